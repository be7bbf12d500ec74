#!/bin/sh
# Uploads a video: upload.sh API_SECRET FILE [TITLE]. Prints the video's id.
# REELGATE is the server's address, http://127.0.0.1:8080 without it. Needs curl and Node.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 API_SECRET FILE [TITLE]" >&2; exit 2; }
server=${REELGATE:-http://127.0.0.1:8080}
config=$(mktemp)
trap 'rm -f "$config"' EXIT

# 1. Upload credentials: the fields of a form, and the address to send it to.
title=$(node -p 'encodeURIComponent(process.argv[1])' "${3:-$(basename "$2")}")
credentials=$(curl --fail-with-body -sS -X PUT -H "Authorization: Apisecret $1" "$server/api/videos?title=$title")

# 2. The form, the file last.
printf '%s' "$credentials" | node -e '
  const { uploadLink, ...fields } = JSON.parse(require("fs").readFileSync(0, "utf8")).clientPayload
  for (const [name, value] of Object.entries(fields)) console.log("form-string = " + JSON.stringify(name + "=" + value))
  console.log("form-string = \"success_action_status=201\"\nurl = " + JSON.stringify(uploadLink))' > "$config"
curl --fail-with-body -sS -o /dev/null --config "$config" -F "file=@\"$2\""

printf '%s' "$credentials" | node -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).videoId'
