/** How a page of the owner's site gets the video, in one language. */
export type SiteCode = {
  id: string
  label: string
  /** What the owner does with it, in a sentence. */
  use: string
  code: string
}

export type SiteCodeOptions = {
  /** The public URL of this installation, such as `https://video.example.org`. */
  serverUrl: string
  videoId: string
  /** The query of a player's address that works once; undefined while there is none. */
  testQuery: string | undefined
}

const FRAME = 'allow="encrypted-media; fullscreen; autoplay" style="border:0;width:100%;aspect-ratio:16/9"'

/** Code that works as copied; all but HTML read the API secret from REELGATE_SECRET, which no browser ever gets. */
export function siteCodes({ serverUrl, videoId, testQuery }: SiteCodeOptions): SiteCode[] {
  const otpUrl = `${serverUrl}/api/videos/${videoId}/otp`
  const playerUrl = `${serverUrl}/player/`
  return [
    {
      id: 'html',
      label: 'HTML',
      use: 'For a first look: put this line into any page. Its link plays once, within six hours; your server asks for a new one for each viewer, as in the other tabs.',
      code:
        testQuery === undefined
          ? ''
          : `<iframe src="${playerUrl}${testQuery.replaceAll('&', '&amp;')}"\n        ${FRAME}></iframe>\n`,
    },
    {
      id: 'curl',
      label: 'curl',
      use: 'Answers with otp and playbackInfo, which go into the address of the player.',
      code: `curl -X POST '${otpUrl}' \\
  -H "Authorization: Apisecret $REELGATE_SECRET" \\
  -H 'Content-Type: application/json' \\
  -d '{"ttl": 300}'
`,
    },
    {
      id: 'node',
      label: 'Node',
      use: 'Save it as page.mjs, start it with “node page.mjs”, and open http://localhost:3000.',
      code: nodeCode(otpUrl, playerUrl),
    },
    { id: 'php', label: 'PHP', use: 'Save it as video.php on your site, and open it.', code: phpCode(otpUrl, playerUrl) },
    {
      id: 'python',
      label: 'Python',
      use: 'Save it as page.py, start it with “python3 page.py”, and open http://localhost:3000.',
      code: pythonCode(otpUrl, playerUrl),
    },
    {
      id: 'wordpress',
      label: 'WordPress',
      use: `Save it as wp-content/plugins/reelgate.php, activate “Reelgate”, and write [reelgate id="${videoId}"] into a page. REELGATE_SECRET is a constant in wp-config.php or a variable of the server.`,
      code: wordPressCode(serverUrl),
    },
  ]
}

function nodeCode(otpUrl: string, playerUrl: string): string {
  return `import { createServer } from 'node:http'

createServer(async (request, response) => {
  if (request.url !== '/') return response.writeHead(404).end()
  const reply = await fetch('${otpUrl}', {
    method: 'POST',
    headers: { Authorization: \`Apisecret \${process.env.REELGATE_SECRET}\`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ttl: 300 }),
  })
  const { otp, playbackInfo, message } = await reply.json()
  const query = new URLSearchParams({ otp, playbackInfo })
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.end(
    reply.ok
      ? \`<iframe src="${playerUrl}?\${query}" ${FRAME}></iframe>\`
      : \`The video cannot be shown: \${message}\`,
  )
}).listen(3000)
`
}

function phpCode(otpUrl: string, playerUrl: string): string {
  return `<?php
$reply = file_get_contents('${otpUrl}', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => "Authorization: Apisecret " . getenv('REELGATE_SECRET') . "\\r\\nContent-Type: application/json",
    'content' => json_encode(['ttl' => 300]),
    'ignore_errors' => true,
]]));
$video = json_decode($reply ?: '{}', true);
if (isset($video['otp'])) {
    $query = http_build_query(['otp' => $video['otp'], 'playbackInfo' => $video['playbackInfo']]);
    echo '<iframe src="${playerUrl}?' . htmlspecialchars($query) . '" ${FRAME}></iframe>';
} else {
    echo 'The video cannot be shown: ' . htmlspecialchars($video['message'] ?? 'no answer');
}
`
}

function pythonCode(otpUrl: string, playerUrl: string): string {
  return `import json, os
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

def frame():
    headers = {"Authorization": "Apisecret " + os.environ.get("REELGATE_SECRET", ""), "Content-Type": "application/json"}
    request = Request("${otpUrl}", json.dumps({"ttl": 300}).encode(), headers)
    try:
        query = urlencode(json.load(urlopen(request)))
    except HTTPError as error:
        return "The video cannot be shown: " + escape(json.load(error)["message"])
    return f'<iframe src="${playerUrl}?{escape(query)}" ${FRAME}></iframe>'

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.path == "/":
            self.wfile.write(frame().encode())

HTTPServer(("", 3000), Page).serve_forever()
`
}

function wordPressCode(serverUrl: string): string {
  return `<?php
/* Plugin Name: Reelgate */
add_shortcode('reelgate', function ($attributes) {
    $secret = defined('REELGATE_SECRET') ? REELGATE_SECRET : getenv('REELGATE_SECRET');
    $reply = wp_remote_post('${serverUrl}/api/videos/' . rawurlencode($attributes['id']) . '/otp', [
        'headers' => ['Authorization' => 'Apisecret ' . $secret, 'Content-Type' => 'application/json'],
        'body' => wp_json_encode(['ttl' => 300]),
    ]);
    if (is_wp_error($reply)) return 'The video cannot be shown: ' . esc_html($reply->get_error_message());
    $video = json_decode(wp_remote_retrieve_body($reply), true);
    if (!isset($video['otp'])) return 'The video cannot be shown: ' . esc_html($video['message'] ?? 'no answer');
    $query = http_build_query(['otp' => $video['otp'], 'playbackInfo' => $video['playbackInfo']]);
    return '<iframe src="${serverUrl}/player/?' . esc_attr($query) . '" ${FRAME}></iframe>';
});
`
}
