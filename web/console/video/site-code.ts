import { listNeeded } from '../protection/annotation.ts'
import { type EmbedWay, embedHtml, fillSlots, PLAYER_DEFAULTS, type PlayerOptions } from './embed-html.ts'
import { OTP_DEFAULTS, type OtpBody, type OtpChoices, otpBody } from './otp-choices.ts'

/** How a page of the owner's site gets the video, in one language. */
type SiteCode = {
  id: string
  label: string
  /** What the owner does with it, in a sentence. */
  use: string
  code: string
  /** A second piece, for another place. */
  more?: { use: string; code: string } | undefined
}

/** How the owner wants the video on their site. */
export type EmbedChoices = { way: EmbedWay; player: PlayerOptions; otp: OtpChoices }

export const USUAL_CHOICES: EmbedChoices = { way: 'iframe', player: PLAYER_DEFAULTS, otp: OTP_DEFAULTS }

type SiteCodeOptions = {
  /** The public URL of this installation, such as `https://video.example.org`. */
  serverUrl: string
  videoId: string
  /** A link that works once; undefined while there is none. */
  testOtp: { otp: string; playbackInfo: string } | undefined
  choices: EmbedChoices
  /** The watermarks that the video's OTPs have by default. */
  defaultAnnotate?: unknown
}

/** Code that works as copied; all but HTML read the API secret from REELGATE_SECRET, which no browser ever gets. */
export function siteCodes({ serverUrl, videoId, testOtp, choices, defaultAnnotate }: SiteCodeOptions): SiteCode[] {
  const code: CodeOptions = {
    otpUrl: `${serverUrl}/api/videos/${videoId}/otp`,
    html: embedHtml(serverUrl, choices.way, choices.player),
    body: otpBody(choices.otp, defaultAnnotate),
    needsViewer: listNeeded(choices.otp.watermark.trim() || defaultAnnotate).length > 0,
  }
  return [
    {
      id: 'html',
      label: 'HTML',
      use: 'For a first look: put this into any page. Its link plays once, within six hours; your server asks for a new one for each viewer, as in the other tabs.',
      code:
        testOtp === undefined
          ? ''
          : `${fillSlots(code.html, { ...testOtp, encodedPlaybackInfo: encodeURIComponent(testOtp.playbackInfo) })}\n`,
    },
    {
      id: 'curl',
      label: 'curl',
      use: 'Answers with otp and playbackInfo, which go into the code of the player: see HTML.',
      code: curlCode(code),
    },
    {
      id: 'node',
      label: 'Node',
      use: 'Save it as page.mjs, start it with “node page.mjs”, and open http://localhost:3000.',
      code: nodeCode(code),
    },
    { id: 'php', label: 'PHP', use: 'Save it as video.php on your site, and open it.', code: phpCode(code) },
    {
      id: 'python',
      label: 'Python',
      use: 'Save it as page.py, start it with “python3 page.py”, and open http://localhost:3000.',
      code: pythonCode(code),
    },
    wordPressCode(videoId, choices.player, code),
  ]
}

/** On one line while it is short. It is also a literal of JavaScript, and of Python. */
function formatJson(body: OtpBody, indentation: number): string {
  const lines = JSON.stringify(body, undefined, 2)
  return Object.keys(body).length === 1 ? JSON.stringify(body) : lines.replaceAll('\n', `\n${' '.repeat(indentation)}`)
}

/** `needsViewer`: a watermark shows who watches, so each viewer must be known. */
type CodeOptions = { otpUrl: string; html: string; body: OtpBody; needsViewer: boolean }

function curlCode({ otpUrl, body }: CodeOptions): string {
  return `curl -X POST '${otpUrl}' \\
  -H "Authorization: Apisecret $REELGATE_SECRET" \\
  -H 'Content-Type: application/json' \\
  -d '${formatJson(body, 2).replaceAll("'", "'\\''")}'
`
}

function nodeCode({ otpUrl, html, body }: CodeOptions): string {
  const template = html.replaceAll(/[\\`]|\$\{/g, '\\$&')
  const player = fillSlots(template, {
    otp: `\${otp}`,
    playbackInfo: `\${playbackInfo}`,
    encodedPlaybackInfo: `\${encodeURIComponent(playbackInfo)}`,
  })
  return `import { createServer } from 'node:http'

createServer(async (request, response) => {
  if (request.url !== '/') return response.writeHead(404).end()
  const reply = await fetch('${otpUrl}', {
    method: 'POST',
    headers: { Authorization: \`Apisecret \${process.env.REELGATE_SECRET}\`, 'Content-Type': 'application/json' },
    body: JSON.stringify(${formatJson(body, 4)}),
  })
  const { otp, playbackInfo, message } = await reply.json()
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.end(reply.ok ? player(otp, playbackInfo) : \`The video cannot be shown: \${message}\`)
}).listen(3000)

function player(otp, playbackInfo) {
  return \`${player}\`
}
`
}

function phpCode({ otpUrl, html, body }: CodeOptions): string {
  return `<?php
$reply = file_get_contents('${otpUrl}', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => "Authorization: Apisecret " . getenv('REELGATE_SECRET') . "\\r\\nContent-Type: application/json",
    'content' => json_encode(${phpLiteral(body)}),
    'ignore_errors' => true,
]]));
$video = json_decode($reply ?: '{}', true);
if (isset($video['otp'])) {
    echo ${phpPlayer(html)};
} else {
    echo 'The video cannot be shown: ' . htmlspecialchars($video['message'] ?? 'no answer');
}
`
}

function pythonCode({ otpUrl, html, body }: CodeOptions): string {
  const template = html.replaceAll(/[{}]/g, '$&$&').replaceAll(/[\\']/g, '\\$&')
  const player = fillSlots(template, {
    otp: '{video["otp"]}',
    playbackInfo: '{video["playbackInfo"]}',
    encodedPlaybackInfo: '{quote(video["playbackInfo"])}',
  })
  return `import json, os
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

def player():
    headers = {"Authorization": "Apisecret " + os.environ.get("REELGATE_SECRET", ""), "Content-Type": "application/json"}
    body = json.dumps(${formatJson(body, 4)})
    try:
        video = json.load(urlopen(Request("${otpUrl}", body.encode(), headers)))
    except HTTPError as error:
        return "The video cannot be shown: " + escape(json.load(error)["message"])
    return f'''${player}'''

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.path == "/":
            self.wfile.write(player().encode())

HTTPServer(("", 3000), Page).serve_forever()
`
}

/** The shortcode of the plug-in, and what its filters are for: who watches the plug-in says itself. */
function wordPressCode(videoId: string, player: PlayerOptions, { body, needsViewer }: CodeOptions): SiteCode {
  const attributes = [
    ...(player.autoplay ? ['autoplay="true"'] : []),
    ...(player.loop ? ['loop="true"'] : []),
    ...(player.litemode ? ['litemode="true"'] : []),
    ...(player.controls === 'on' ? [] : [`controls="${player.controls}"`]),
    ...(/^[\w-]+$/.test(player.captionLanguage) ? [`cc_language="${player.captionLanguage}"`] : []),
  ]
  const filters = wordPressFilters(videoId, body, needsViewer)
  return {
    id: 'wordpress',
    label: 'WordPress',
    use: 'Once the plug-in is installed, add its block “Reelgate” to a page and choose the video there, or write:',
    code: `[reelgate id="${videoId}"${attributes.map((attribute) => ` ${attribute}`).join('')}]\n`,
    more:
      filters === ''
        ? undefined
        : {
            use: 'And into functions.php of the theme, for what your server asks for with this video:',
            code: filters,
          },
  }
}

/** Empty: nothing differs from what the plug-in asks for. */
function wordPressFilters(videoId: string, { userId, viewer, ttl, ...rest }: OtpBody, needsViewer: boolean): string {
  const asked = { ...(ttl !== OTP_DEFAULTS.ttlS && { ttl }), ...rest }
  const entries = Object.entries(asked).map(([name, value]) => `${phpLiteral(name)} => ${phpLiteral(value)}`)
  const isThis = `$video === ${phpLiteral(videoId)}`
  const options = `add_filter('reelgate_otp_options', function ($options, $user, $video) {
    return ${isThis} ? [${entries.join(', ')}] + $options : $options;
}, 10, 3);
`
  // Only viewers with a userId can be counted, and guests have no name.
  const members = `add_filter('reelgate_may_play', function ($may, $video, $post, $userId) {
    return $may && ($userId > 0 || !(${isThis}));
}, 10, 4);
`
  const refusesGuests = rest.streamLimit !== undefined || needsViewer
  return [...(entries.length > 0 ? [options] : []), ...(refusesGuests ? [members] : [])].join('')
}

/** An expression that reads the OTP from `$video`. */
function phpPlayer(html: string): string {
  return fillSlots(phpLiteral(html), {
    otp: "' . $video['otp'] . '",
    playbackInfo: "' . $video['playbackInfo'] . '",
    encodedPlaybackInfo: "' . rawurlencode($video['playbackInfo']) . '",
  })
}

function phpLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(phpLiteral).join(', ')}]`
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, '\\$&')}'`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `[${Object.entries(value)
    .map(([name, entry]) => `${phpLiteral(name)} => ${phpLiteral(entry)}`)
    .join(', ')}]`
}
