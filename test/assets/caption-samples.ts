// Captions as old programs wrote them.

/** A few sentences in each language, with the encodings in which its old files are. */
export const TEXTS: readonly { language: string; encodings: readonly string[]; lines: readonly string[] }[] = [
  {
    language: 'ru',
    encodings: ['windows-1251', 'koi8-r', 'ibm866', 'iso-8859-5', 'x-mac-cyrillic'],
    lines: [
      'Здравствуйте! Сегодня мы поговорим о том,',
      'как устроено сердце человека.',
      'Оно бьётся около ста тысяч раз в день.',
      'Посмотрите внимательно на этот рисунок.',
    ],
  },
  {
    language: 'uk',
    encodings: ['windows-1251', 'koi8-u'],
    lines: [
      'Доброго дня! Сьогодні ми розглянемо,',
      'як працює людське серце.',
      'Його вивчають уже багато століть.',
      'Подивіться уважно на цей малюнок.',
    ],
  },
  {
    language: 'bg',
    encodings: ['windows-1251'],
    lines: ['Добър ден! Днес ще говорим за това', 'как е устроено човешкото сърце.', 'То бие около сто хиляди пъти на ден.'],
  },
  {
    language: 'sr',
    encodings: ['windows-1251'],
    lines: ['Добар дан! Данас ћемо говорити о томе', 'како је грађено људско срце.', 'Оно куца око сто хиљада пута на дан.'],
  },
  {
    language: 'pl',
    encodings: ['windows-1250', 'iso-8859-2'],
    lines: [
      'Dzień dobry! Dzisiaj porozmawiamy o tym,',
      'jak zbudowane jest ludzkie serce.',
      'Bije ono około stu tysięcy razy dziennie.',
      'Proszę uważnie spojrzeć na następną planszę: źródło ciśnienia.',
    ],
  },
  {
    language: 'cs',
    encodings: ['windows-1250', 'iso-8859-2'],
    lines: [
      'Dobrý den! Dnes si budeme povídat o tom,',
      'jak funguje lidské srdce.',
      'Tluče přibližně stotisíckrát za den.',
      'Podívejte se pozorně na následující obrázek, šťastně.',
    ],
  },
  {
    language: 'hu',
    encodings: ['windows-1250', 'iso-8859-2'],
    lines: [
      'Jó napot kívánok! Ma arról beszélünk,',
      'hogyan működik az emberi szív.',
      'Naponta körülbelül százezerszer dobban.',
      'Nézzék meg figyelmesen ezt az ábrát, és őrizzék meg.',
    ],
  },
  {
    language: 'ro',
    encodings: ['windows-1250', 'iso-8859-2'],
    lines: [
      'Bună ziua! Astăzi vom vorbi despre',
      'cum funcţionează inima omului.',
      'Ea bate de aproximativ o sută de mii de ori pe zi.',
      'Priviţi cu atenţie această imagine şi reţineţi.',
    ],
  },
  {
    language: 'hr',
    encodings: ['windows-1250'],
    lines: [
      'Dobar dan! Danas ćemo govoriti o tome',
      'kako je građeno ljudsko srce.',
      'Ono kuca oko sto tisuća puta na dan.',
      'Pažljivo pogledajte sljedeću sliku i riječi žile.',
    ],
  },
  {
    language: 'sk',
    encodings: ['windows-1250'],
    lines: [
      'Dobrý deň! Dnes sa budeme rozprávať o tom,',
      'ako funguje ľudské srdce.',
      'Bije približne stotisíckrát za deň.',
      'Pozrite sa pozorne na tento obrázok, ďalší šľachetný.',
    ],
  },
  {
    language: 'tr',
    encodings: ['windows-1254'],
    lines: [
      'Merhaba! Bugün insan kalbinin',
      'nasıl çalıştığını konuşacağız.',
      'Kalp günde yaklaşık yüz bin kez atar.',
      'Lütfen bu şekle dikkatle bakın.',
    ],
  },
  {
    language: 'el',
    encodings: ['windows-1253', 'iso-8859-7'],
    lines: [
      'Καλημέρα! Σήμερα θα μιλήσουμε για το πώς',
      'λειτουργεί η ανθρώπινη καρδιά.',
      'Χτυπά περίπου εκατό χιλιάδες φορές την ημέρα.',
      'Άρα κοιτάξτε προσεκτικά αυτή την εικόνα.',
    ],
  },
  {
    language: 'he',
    encodings: ['windows-1255'],
    lines: ['שלום! היום נדבר על הדרך', 'שבה פועל הלב של האדם.', 'הוא פועם כמאה אלף פעמים ביום.', 'הביטו היטב בתמונה הזאת.'],
  },
  {
    language: 'ar',
    encodings: ['windows-1256', 'iso-8859-6'],
    lines: [
      'مرحبا! اليوم سنتحدث عن',
      'كيف يعمل قلب الإنسان.',
      'ينبض حوالي مئة ألف مرة في اليوم.',
      'انظروا بعناية إلى هذه الصورة.',
    ],
  },
  {
    language: 'fa',
    encodings: ['windows-1256'],
    lines: [
      'سلام! امروز درباره اين صحبت مي کنيم',
      'که قلب انسان چگونه کار مي کند.',
      'قلب روزانه حدود صد هزار بار مي تپد.',
      'لطفا به اين تصوير با دقت نگاه کنيد.',
    ],
  },
  {
    language: 'th',
    encodings: ['windows-874'],
    lines: ['สวัสดีครับ วันนี้เราจะพูดถึง', 'การทำงานของหัวใจมนุษย์', 'หัวใจเต้นประมาณหนึ่งแสนครั้งต่อวัน', 'กรุณาดูภาพนี้อย่างละเอียด'],
  },
  {
    language: 'vi',
    encodings: ['windows-1258'],
    lines: [
      'Xin chào! Hôm nay chúng ta sẽ nói về',
      'cách trái tim con người hoạt động.',
      'Nó đập khoảng một trăm nghìn lần mỗi ngày.',
      'Hãy nhìn kỹ hình ảnh này.',
    ],
  },
  {
    language: 'zh',
    encodings: ['gb18030'],
    lines: ['大家好！今天我们来谈谈', '人的心脏是怎样工作的。', '它每天大约跳动十万次。', '请仔细看这张图。'],
  },
  {
    language: 'zh-tw',
    encodings: ['big5'],
    lines: ['大家好！今天我們來談談', '人的心臟是怎樣運作的。', '它每天大約跳動十萬次。', '請仔細看這張圖。'],
  },
  {
    language: 'ja',
    encodings: ['shift_jis', 'euc-jp', 'iso-2022-jp'],
    lines: [
      'こんにちは。今日は人間の心臓が',
      'どのように働くかについて話します。',
      '心臓は一日に約十万回打ちます。',
      'この図をよく見てください。',
    ],
  },
  {
    language: 'ko',
    encodings: ['euc-kr'],
    lines: [
      '안녕하세요. 오늘은 사람의 심장이',
      '어떻게 움직이는지 이야기하겠습니다.',
      '심장은 하루에 약 십만 번 뜁니다.',
      '이 그림을 자세히 보세요.',
    ],
  },
  {
    language: 'de',
    encodings: ['windows-1252', 'macintosh'],
    lines: [
      'Guten Tag! Heute sprechen wir darüber,',
      'wie das menschliche Herz schlägt.',
      'Es schlägt ungefähr hunderttausendmal täglich.',
      'Schauen Sie sich dieses schöne Bild genau an, bitte: groß.',
    ],
  },
  {
    language: 'fr',
    encodings: ['windows-1252', 'macintosh'],
    lines: [
      'Bonjour ! Aujourd’hui nous allons parler',
      'de la façon dont le cœur humain fonctionne.',
      'Il bat à peu près cent mille fois par jour.',
      'Regardez bien cette image, s’il vous plaît, là où ça s’élève.',
    ],
  },
  {
    language: 'es',
    encodings: ['windows-1252'],
    lines: [
      '¡Buenos días! Hoy hablaremos de cómo',
      'funciona el corazón humano.',
      'Late unas cien mil veces al día.',
      '¿Qué más? Mañana lo verán en otra lección.',
    ],
  },
  {
    language: 'pt-br',
    encodings: ['windows-1252'],
    lines: [
      'Olá! Hoje vamos falar sobre como',
      'funciona o coração humano.',
      'Ele bate cerca de cem mil vezes por dia.',
      'Olhem com atenção para esta imagem. Não é difícil.',
    ],
  },
  {
    language: 'sv',
    encodings: ['windows-1252'],
    lines: [
      'God dag! I dag ska vi prata om',
      'hur människans hjärta fungerar.',
      'Det slår ungefär hundratusen gånger om dagen.',
      'Titta noga på den här bilden, så förstår ni.',
    ],
  },
  {
    language: 'lt',
    encodings: ['windows-1257'],
    lines: [
      'Laba diena! Šiandien kalbėsime apie tai,',
      'kaip veikia žmogaus širdis.',
      'Ji plaka apie šimtą tūkstančių kartų per dieną.',
      'Atidžiai pažiūrėkite į šį paveikslą.',
    ],
  },
  {
    language: 'lv',
    encodings: ['windows-1257'],
    lines: [
      'Labdien! Šodien mēs runāsim par to,',
      'kā darbojas cilvēka sirds.',
      'Tā sitas aptuveni simts tūkstošus reižu dienā.',
      'Uzmanīgi apskatiet šo attēlu.',
    ],
  },
  {
    language: 'et',
    encodings: ['windows-1257'],
    lines: [
      'Tere! Täna räägime sellest,',
      'kuidas inimese süda töötab.',
      'See lööb umbes sada tuhat korda päevas.',
      'Vaadake seda pilti hoolikalt, palun: õpetus.',
    ],
  },
]

/** The captions of some lines as an SRT. */
export function toSrt(lines: readonly string[]): string {
  return lines.map((line, n) => `${n + 1}\r\n00:00:0${2 * n},000 --> 00:00:0${2 * n + 1},500\r\n${line}\r\n`).join('\r\n')
}

/** Encodes text by searching the bytes that decode to it: Node has no encoder for old encodings. */
export function encodeAs(encoding: string, text: string): Buffer {
  if (encoding === 'iso-2022-jp') return encodeAsJapaneseMail(text)
  const bytesOf = tableOf(encoding)
  const characters =
    encoding === 'windows-1258' ? [...text].flatMap((character) => withMarksApart(character, bytesOf)) : [...text]
  return Buffer.from(characters.flatMap((character) => bytesOf.get(character) ?? noBytes(encoding, character)))
}

const tables = new Map<string, Map<string, number[]>>()

function tableOf(encoding: string): Map<string, number[]> {
  const known = tables.get(encoding)
  if (known) return known
  const table = new Map<string, number[]>()
  const decoder = new TextDecoder(encoding)
  const add = (...bytes: number[]) => {
    const text = decoder.decode(Uint8Array.from(bytes))
    if ([...text].length === 1 && text !== '\ufffd' && !table.has(text)) table.set(text, bytes)
  }
  for (let one = 0; one < 256; one++) add(one)
  if (/gb|big5|jis|euc/.test(encoding))
    for (let one = 0x81; one < 0xff; one++) for (let two = 0x40; two < 0xff; two++) add(one, two)
  tables.set(encoding, table)
  return table
}

/** In Windows-1258 most Vietnamese letters are a letter and a tone. */
function withMarksApart(character: string, bytesOf: Map<string, number[]>): string[] {
  if (bytesOf.has(character)) return [character]
  const [base = '', ...marks] = character.normalize('NFD')
  for (const tone of marks) {
    const letter = [base, ...marks.filter((mark) => mark !== tone)].join('').normalize('NFC')
    if (bytesOf.has(letter) && bytesOf.has(tone)) return [letter, tone]
  }
  return noBytes('windows-1258', character)
}

function encodeAsJapaneseMail(text: string): Buffer {
  const runs = text.split(/([^ -~\r\n]+)/).map((run, n) => {
    const japanese = () => Buffer.from(encodeAs('euc-jp', run).map((byte) => byte & 0x7f)).toString('latin1')
    return n % 2 === 0 ? run : `\x1b$B${japanese()}\x1b(B`
  })
  return Buffer.from(runs.join(''), 'latin1')
}

function noBytes(encoding: string, character: string): never {
  throw new Error(`${encoding} has no ${character}`)
}
