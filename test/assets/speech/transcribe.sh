#!/bin/sh
# A program for REELGATE_TRANSCRIBE_COMMAND: PocketSphinx, whose grammar is a file of REELGATE_TRANSCRIBE_FILES. In
# languages that are not spoken it does what it should not.
set -eu
files=$(dirname "$0")
case "$1" in
  en* | de)
    cat >/tmp/speech.wav
    pocketsphinx_continuous -infile /tmp/speech.wav -jsgf "$files/digits.gram" -time yes -logfn /dev/null >/tmp/words
    awk 'BEGIN { print "WEBVTT" }
      NF == 4 && $1 ~ /^[a-z]/ { sub(/\(.*/, "", $1); printf "\n00:%02d:%06.3f --> 00:%02d:%06.3f\n%s\n", $2 / 60, $2 % 60, $3 / 60, $3 % 60, $1 }' /tmp/words
    ;;
  qaa) cat >/dev/null; echo 'no captions at all' ;;
  qab) cat >/dev/null; awk 'BEGIN { print "WEBVTT\n"; for (i = 0; i < 200000; i++) print "00:00.000 --> 00:01.000\nagain and again\n" }' ;;
  qac) echo 'no such model' >&2; exit 3 ;;
  qad)
    # What it reaches, as captions.
    printf 'WEBVTT\n\n00:00.000 --> 00:01.000\n'
    while read -r place; do if [ -e "$place" ]; then echo "sees $place"; fi; done <"$files/places"
    if python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9), 1)' 2>/tmp/error; then echo connected; else tail -n 1 /tmp/error; fi
    if echo more >>"$files/places"; then echo written; fi 2>/dev/null
    ;;
  qae)
    printf 'WEBVTT\n\n00:00.000 --> 00:04.000\nfirst\n'
    while [ -e "$files/wait" ]; do sleep 0.05; done
    ;;
  qaf) sleep "$(cat "$files/wait")" ;;
esac
