import { execFile } from 'node:child_process'
import { openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { Owner } from '../client.ts'
import { changeRows, type Stored } from '../rows.ts'
import { keepVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'
import { decode, newFolder, writeRendition } from './videos.ts'

/** A tone of 880 Hz from one second to another, in a file of so many seconds. */
export function makeDub({ fromS, toS, seconds, extension = '.m4a' }: ToneFile): Promise<string> {
  const args = ['-f', 'lavfi', '-i', `aevalsrc=0.3*sin(2*PI*880*t)*between(t\\,${fromS}\\,${toS}):s=44100:d=${seconds}`]
  return keepVideo(args.join(' '), extension, (file) =>
    promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args, '-y', file]),
  )
}
type ToneFile = { fromS: number; toS: number; seconds: number; extension?: string }

export type AudioTrack = {
  id: number
  name: string
  language?: string
  default: boolean
  state: string
  added: boolean
  fileId?: number
  progress?: number
  differenceS?: number
  error?: string
}

/** An owner's calls about the audio tracks of a video. */
export function audioOf({ owner, videoId }: { owner: Owner; videoId: string }) {
  const path = `/api/videos/${videoId}/audio`
  const list = async () => ((await (await owner.call('GET', path)).json()) as { tracks: AudioTrack[] }).tracks
  const send = (file: Blob, query: string, name = 'dub.m4a') => {
    const form = new FormData()
    form.append('file', file, name)
    return fetch(`${owner.url}${path}?${query}`, {
      method: 'POST',
      headers: { Authorization: `Apisecret ${owner.apiKey}` },
      body: form,
    })
  }
  return {
    list,
    send,
    /** @returns the id of the track that was added */
    async add(file: string, query = 'language=fr'): Promise<number> {
      const response = await send(await openAsBlob(file), query, basename(file))
      if (response.status !== 200) throw new Error(`adding audio: ${response.status} ${await response.text()}`)
      return ((await response.json()) as { tracks: AudioTrack[] }).tracks.at(-1)?.id ?? 0
    },
    async until(id: number, state: string): Promise<AudioTrack> {
      const find = async () => (await list()).find((track) => track.id === id)
      await expect.poll(async () => (await find())?.state).toBe(state)
      return (await find()) as AudioTrack
    },
    put: (id: number, body: object) => owner.call('PUT', `${path}/${id}`, { body }),
    remove: (id: number) => owner.call('DELETE', `${path}/${id}`),
  }
}

/** Adds a track that is audible from the first to the second second. @returns its id, once it can be played */
export async function addDub(of: { owner: Owner; videoId: string }): Promise<number> {
  const audio = audioOf(of)
  const id = await audio.add(await makeDub({ fromS: 1, toS: 2, seconds: 3 }))
  await audio.until(id, 'ready')
  return id
}

/** Keeps the audio tracks of a video from being encoded, as if another server were at it, whose claim this one would take over. */
export function claimEncoding(stored: Stored, videoId: string) {
  const values = ['dub', videoId, 'held', 'another server', 2 ** 31]
  const [keep, release] = stored.databaseUrl ? POSTGRES_TRIGGER : SQLITE_TRIGGER
  changeRows(stored, 'insert into claim (kind, subject, id, server, ends_at_s) values (?, ?, ?, ?, ?)', ...values)
  changeRows(stored, keep)
  return {
    hasEncoded(progress: number) {
      changeRows(stored, 'update dub set attempts = 1, progress = ? where video_id = ? and encoded = 0', progress, videoId)
    },
    end() {
      changeRows(stored, release)
      changeRows(stored, "delete from claim where id = 'held'")
    },
  }
}
const SQLITE_TRIGGER = [
  "create trigger held before delete on claim when old.id = 'held' begin select raise(ignore); end",
  'drop trigger held',
] as const
const POSTGRES_TRIGGER = [
  `create function held() returns trigger language plpgsql as $$ begin return null; end $$;
   create trigger held before delete on claim for each row when (old.id = 'held') execute function held()`,
  'drop trigger held on claim; drop function held()',
] as const

/** From when to when 880 Hz are audible in an audio rendition, and how long it is, in seconds. */
export async function audibleIn(viewer: Viewer, id: number): Promise<{ fromS: number; toS: number; lengthS: number }> {
  const download = { name: String(id), kind: 'audio' as const, widthPx: 0, heightPx: 0, ...(await viewer.download(String(id))) }
  const file = await writeRendition(await newFolder(), download)
  const { bytes } = await decode(file, '-ac', '1', '-ar', '48000', '-af', 'bandpass=f=880:t=h:w=400', '-f', 's16le', '-')
  const samples = new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~1)))
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
  const isLoud = (sample: number) => Math.abs(sample) > peak / 2 // an encoder's echoes are far below
  return {
    fromS: samples.findIndex(isLoud) / 48_000,
    toS: samples.findLastIndex(isLoud) / 48_000,
    lengthS: samples.length / 48_000,
  }
}

/** Within 25 ms. */
export const near = (seconds: number) => expect.closeTo(seconds, 1.3)
