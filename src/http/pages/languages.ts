import type { FastifyRequest } from 'fastify'

// What viewers read on pages that this server writes itself. The player has its own sentences: web/languages/.

/** `{page}`: an address without its scheme. */
type Sentences = {
  /** As the player says it, and the next one. */
  'site-not-allowed': string
  'insecure-page': string
  limited: string
  unavailable: string
  internal: string
  'not-found': string
  /** On the public page of a video: where it is watched. */
  'watched-elsewhere': string
  'watch-at': string
  /** Titles of the pages. */
  'page-not-found': string
  'did-not-work': string
}
export type SentenceName = keyof Sentences

const LANGUAGES: Readonly<Record<string, Sentences>> = {
  en: {
    'site-not-allowed': 'This video may not be shown on this site. Watch it on the site it belongs to.',
    'insecure-page': 'This video plays only on a secure page. Open {page} with https:// in front.',
    limited: 'Too many requests come from here. Wait a moment, then try again.',
    unavailable: 'The server cannot answer right now. Try again in a moment.',
    internal: 'Something went wrong on the server. Try again, or ask the owner of this site.',
    'not-found': 'There is nothing at this address. Go back to the page you came from, or ask the owner of this site.',
    'page-not-found': 'Page not found',
    'did-not-work': 'This did not work',
    'watched-elsewhere': 'It is watched on its owner’s site.',
    'watch-at': 'Watch at {page}',
  },
  es: {
    'site-not-allowed': 'Este vídeo no se puede mostrar en este sitio. Míralo en el sitio al que pertenece.',
    'insecure-page': 'Este vídeo solo se reproduce en una página segura. Abre {page} con https:// delante.',
    limited: 'Llegan demasiadas solicitudes desde aquí. Espera un momento e inténtalo de nuevo.',
    unavailable: 'El servidor no puede responder en este momento. Inténtalo de nuevo en un momento.',
    internal: 'Algo falló en el servidor. Inténtalo de nuevo o pregunta al propietario de este sitio.',
    'not-found': 'No hay nada en esta dirección. Vuelve a la página de la que vienes o pregunta al propietario de este sitio.',
    'page-not-found': 'Página no encontrada',
    'did-not-work': 'No ha funcionado',
    'watched-elsewhere': 'Se ve en el sitio de su propietario.',
    'watch-at': 'Ver en {page}',
  },
  pt: {
    'site-not-allowed': 'Este vídeo não pode ser exibido neste site. Assista no site a que ele pertence.',
    'insecure-page': 'Este vídeo só toca em uma página segura. Abra {page} com https:// na frente.',
    limited: 'Chegam pedidos demais daqui. Espere um momento e tente de novo.',
    unavailable: 'O servidor não pode responder agora. Tente de novo em um momento.',
    internal: 'Algo deu errado no servidor. Tente de novo ou pergunte ao dono deste site.',
    'not-found': 'Não há nada neste endereço. Volte à página de onde veio ou pergunte ao dono deste site.',
    'page-not-found': 'Página não encontrada',
    'did-not-work': 'Isto não funcionou',
    'watched-elsewhere': 'Ele é assistido no site do dono.',
    'watch-at': 'Assistir em {page}',
  },
  fr: {
    'site-not-allowed': 'Cette vidéo ne peut pas être affichée sur ce site. Regardez-la sur le site auquel elle appartient.',
    'insecure-page': 'Cette vidéo n’est lue que sur une page sécurisée. Ouvrez {page} précédé de https://.',
    limited: 'Trop de requêtes viennent d’ici. Attendez un instant, puis réessayez.',
    unavailable: 'Le serveur ne peut pas répondre pour le moment. Réessayez dans un instant.',
    internal: 'Une erreur s’est produite sur le serveur. Réessayez ou demandez au propriétaire de ce site.',
    'not-found': 'Il n’y a rien à cette adresse. Revenez à la page d’où vous venez ou demandez au propriétaire de ce site.',
    'page-not-found': 'Page introuvable',
    'did-not-work': 'Cela n’a pas fonctionné',
    'watched-elsewhere': 'Elle se regarde sur le site de son propriétaire.',
    'watch-at': 'Regarder sur {page}',
  },
  de: {
    'site-not-allowed':
      'Dieses Video darf auf dieser Website nicht gezeigt werden. Sehen Sie es auf der Website an, zu der es gehört.',
    'insecure-page': 'Dieses Video läuft nur auf einer sicheren Seite. Öffnen Sie {page} mit https:// davor.',
    limited: 'Von hier kommen zu viele Anfragen. Warten Sie einen Moment und versuchen Sie es noch einmal.',
    unavailable: 'Der Server kann gerade nicht antworten. Versuchen Sie es gleich noch einmal.',
    internal:
      'Auf dem Server ist ein Fehler aufgetreten. Versuchen Sie es noch einmal oder fragen Sie den Betreiber dieser Website.',
    'not-found':
      'Unter dieser Adresse gibt es nichts. Gehen Sie zurück zu der Seite, von der Sie kommen, oder fragen Sie den Betreiber dieser Website.',
    'page-not-found': 'Seite nicht gefunden',
    'did-not-work': 'Das hat nicht funktioniert',
    'watched-elsewhere': 'Es wird auf der Website seines Betreibers angesehen.',
    'watch-at': 'Ansehen auf {page}',
  },
  hi: {
    'site-not-allowed': 'यह वीडियो इस साइट पर नहीं दिखाया जा सकता। इसे इसकी अपनी साइट पर देखें।',
    'insecure-page': 'यह वीडियो केवल सुरक्षित पेज पर चलता है। {page} को आगे https:// लगाकर खोलें।',
    limited: 'यहाँ से बहुत ज़्यादा अनुरोध आ रहे हैं। थोड़ा रुककर फिर कोशिश करें।',
    unavailable: 'सर्वर अभी जवाब नहीं दे सकता। थोड़ी देर में फिर कोशिश करें।',
    internal: 'सर्वर पर कुछ गड़बड़ हुई। फिर कोशिश करें या इस साइट के मालिक से पूछें।',
    'not-found': 'इस पते पर कुछ नहीं है। पिछले पेज पर लौटें या इस साइट के मालिक से पूछें।',
    'page-not-found': 'पेज नहीं मिला',
    'did-not-work': 'यह काम नहीं किया',
    'watched-elsewhere': 'इसे इसके मालिक की साइट पर देखा जाता है।',
    'watch-at': '{page} पर देखें',
  },
  ar: {
    'site-not-allowed': 'لا يجوز عرض هذا الفيديو في هذا الموقع. شاهده في الموقع الذي ينتمي إليه.',
    'insecure-page': 'لا يعمل هذا الفيديو إلا في صفحة آمنة. افتح {page} مسبوقًا بـ https://.',
    limited: 'تصل طلبات كثيرة جدًا من هنا. انتظر لحظة ثم حاول مرة أخرى.',
    unavailable: 'لا يستطيع الخادم الرد الآن. حاول مرة أخرى بعد لحظات.',
    internal: 'حدث خطأ في الخادم. حاول مرة أخرى أو اسأل مالك هذا الموقع.',
    'not-found': 'لا يوجد شيء في هذا العنوان. ارجع إلى الصفحة التي جئت منها أو اسأل مالك هذا الموقع.',
    'page-not-found': 'الصفحة غير موجودة',
    'did-not-work': 'لم ينجح ذلك',
    'watched-elsewhere': 'يُشاهَد في موقع مالكه.',
    'watch-at': 'شاهده في {page}',
  },
  ru: {
    'site-not-allowed': 'Это видео нельзя показывать на этом сайте. Смотрите его на сайте, которому оно принадлежит.',
    'insecure-page': 'Это видео воспроизводится только на защищённой странице. Откройте {page} с https:// в начале.',
    limited: 'Отсюда приходит слишком много запросов. Подождите немного и попробуйте снова.',
    unavailable: 'Сервер сейчас не может ответить. Попробуйте снова чуть позже.',
    internal: 'На сервере произошла ошибка. Попробуйте снова или обратитесь к владельцу этого сайта.',
    'not-found': 'По этому адресу ничего нет. Вернитесь на предыдущую страницу или обратитесь к владельцу этого сайта.',
    'page-not-found': 'Страница не найдена',
    'did-not-work': 'Не получилось',
    'watched-elsewhere': 'Оно доступно для просмотра на сайте владельца.',
    'watch-at': 'Смотреть на {page}',
  },
  tr: {
    'site-not-allowed': 'Bu video bu sitede gösterilemez. Ait olduğu sitede izleyin.',
    'insecure-page': 'Bu video yalnızca güvenli bir sayfada oynatılır. {page} adresini başına https:// koyarak açın.',
    limited: 'Buradan çok fazla istek geliyor. Biraz bekleyip yeniden deneyin.',
    unavailable: 'Sunucu şu anda yanıt veremiyor. Birazdan yeniden deneyin.',
    internal: 'Sunucuda bir hata oluştu. Yeniden deneyin veya bu sitenin sahibine sorun.',
    'not-found': 'Bu adreste bir şey yok. Geldiğiniz sayfaya dönün veya bu sitenin sahibine sorun.',
    'page-not-found': 'Sayfa bulunamadı',
    'did-not-work': 'Bu işe yaramadı',
    'watched-elsewhere': 'Sahibinin sitesinde izlenir.',
    'watch-at': '{page} adresinde izle',
  },
  id: {
    'site-not-allowed': 'Video ini tidak boleh ditampilkan di situs ini. Tontonlah di situs asalnya.',
    'insecure-page': 'Video ini hanya diputar di halaman aman. Buka {page} dengan https:// di depannya.',
    limited: 'Terlalu banyak permintaan datang dari sini. Tunggu sebentar, lalu coba lagi.',
    unavailable: 'Server tidak dapat menjawab saat ini. Coba lagi sebentar lagi.',
    internal: 'Terjadi kesalahan di server. Coba lagi, atau tanyakan kepada pemilik situs ini.',
    'not-found': 'Tidak ada apa pun di alamat ini. Kembalilah ke halaman sebelumnya, atau tanyakan kepada pemilik situs ini.',
    'page-not-found': 'Halaman tidak ditemukan',
    'did-not-work': 'Ini tidak berhasil',
    'watched-elsewhere': 'Video ini ditonton di situs pemiliknya.',
    'watch-at': 'Tonton di {page}',
  },
  ja: {
    'site-not-allowed': 'この動画はこのサイトでは表示できません。元のサイトでご覧ください。',
    'insecure-page': 'この動画は安全なページでのみ再生できます。{page} の前に https:// を付けて開いてください。',
    limited: 'ここからのリクエストが多すぎます。しばらく待ってから、もう一度お試しください。',
    unavailable: 'サーバーは現在応答できません。しばらくしてから、もう一度お試しください。',
    internal: 'サーバーで問題が発生しました。もう一度試すか、このサイトの運営者にお問い合わせください。',
    'not-found': 'このアドレスには何もありません。前のページに戻るか、このサイトの運営者にお問い合わせください。',
    'page-not-found': 'ページが見つかりません',
    'did-not-work': 'うまくいきませんでした',
    'watched-elsewhere': 'この動画は所有者のサイトで視聴できます。',
    'watch-at': '{page} で見る',
  },
  zh: {
    'site-not-allowed': '此视频不能在本网站播放。请到它所属的网站观看。',
    'insecure-page': '此视频只能在安全页面播放。请在 {page} 前加上 https:// 打开。',
    limited: '来自此处的请求过多。请稍等片刻再试。',
    unavailable: '服务器暂时无法响应。请稍后再试。',
    internal: '服务器出现问题。请重试，或询问网站所有者。',
    'not-found': '此地址没有内容。请返回之前的页面，或询问网站所有者。',
    'page-not-found': '找不到页面',
    'did-not-work': '操作未成功',
    'watched-elsewhere': '请在所有者的网站观看。',
    'watch-at': '在 {page} 观看',
  },
}

/** The language of a page, and what is said in it. */
export type PageLanguage = {
  lang: string
  dir: 'ltr' | 'rtl'
  sentence(name: SentenceName, page?: string): string
}

export const PAGE_LANGUAGES: readonly string[] = Object.keys(LANGUAGES)
const RIGHT_TO_LEFT = 'ar'
/** A browser's list is shorter. */
const MAX_HEADER_LENGTH = 500

/** The language that the request asks for, by `lang` in its address or by its browser; English where there is none of these. */
export function pageLanguage({ url, headers }: Pick<FastifyRequest, 'url' | 'headers'>): PageLanguage {
  const { searchParams } = new URL(url, 'http://page.invalid')
  const wanted = [searchParams.get('lang') ?? '', ...acceptedLanguages(headers['accept-language'] ?? '')]
  const codes = wanted.map((tag) => tag.toLowerCase().split('-', 1)[0] ?? '')
  const lang = codes.find((code) => Object.hasOwn(LANGUAGES, code)) ?? 'en'
  return {
    ...{ lang, dir: lang === RIGHT_TO_LEFT ? 'rtl' : 'ltr' },
    sentence: (name, page = '') => (LANGUAGES[lang]?.[name] ?? '').replace('{page}', () => page),
  }
}

/** The tags of `Accept-Language`, the most wanted first. */
function acceptedLanguages(header: string): string[] {
  return header
    .slice(0, MAX_HEADER_LENGTH)
    .split(',')
    .map((entry) => {
      const [tag = '', weight = ''] = entry.split(';')
      const [, value = '1'] = weight.split('=')
      return { tag: tag.trim(), weight: Number(value) || 0 }
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag)
}
