import { NumberInput, Slider, Switch, TextInput } from '@mantine/core'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { posterUrl } from '../posters.ts'
import { ColorField } from '../ui/color-field.tsx'
import { listNeeded, NEW_WATERMARK, needsSentence, type Watermark } from './annotation.ts'
import styles from './watermark-fields.module.css'

type WatermarkFieldsProps = {
  /** Whose poster is behind the preview; undefined: a plain picture. */
  video?: VideoBody
  watermark: Watermark | null
  onChange(watermark: Watermark | null): void
}

/** A text over the picture, with how it will look. */
export function WatermarkFields({ video, watermark, onChange }: WatermarkFieldsProps) {
  const change = (changes: Partial<Watermark>) => watermark && onChange({ ...watermark, ...changes })
  const needs = watermark && needsSentence(listNeeded(watermark.text))
  return (
    <fieldset className={styles.fields}>
      <legend>Watermark</legend>
      <Switch
        label="Show a text over the picture"
        description="It identifies the viewer in a recording of the screen."
        checked={watermark !== null}
        onChange={({ target }) => onChange(target.checked ? NEW_WATERMARK : null)}
      />
      {watermark && (
        <>
          <TextInput
            label="Text"
            description="{id}, {name} and {email} are of the viewer, {ip} is the address, {date} the day."
            required
            maxLength={200}
            value={watermark.text}
            onChange={({ target }) => change({ text: target.value })}
          />
          {needs && <p className={styles.needs}>{needs}</p>}
          <div className={styles.row}>
            <ColorField label="Color" value={watermark.color} onChange={(color) => change({ color })} />
            <NumberInput
              label="Height of letters, in pixels"
              min={6}
              max={120}
              allowDecimal={false}
              value={watermark.size}
              onChange={(size) => change({ size: Number(size) || NEW_WATERMARK.size })}
            />
          </div>
          <div>
            <span className={styles.label} id="watermark-alpha">
              Opacity, {Math.round(watermark.alpha * 100)} %
            </span>
            <Slider
              thumbProps={{ 'aria-labelledby': 'watermark-alpha' }}
              min={0.1}
              max={1}
              step={0.05}
              label={null}
              value={watermark.alpha}
              onChange={(alpha) => change({ alpha: Math.round(alpha * 100) / 100 })}
            />
          </div>
          <Switch
            label="It moves"
            description="Every five seconds to another place, so that it cannot be cut away."
            checked={watermark.moves}
            onChange={({ target }) => change({ moves: target.checked })}
          />
          <WatermarkPreview video={video} watermark={watermark} />
        </>
      )}
    </fieldset>
  )
}

const EXAMPLES: Readonly<Record<string, string>> = {
  '{id}': 'reader-4711',
  '{name}': 'Ann Example',
  '{email}': 'ann@example.org',
  '{ip}': '192.0.2.7',
}

type WatermarkPreviewProps = { video: VideoBody | undefined; watermark: Watermark }

function WatermarkPreview({ video, watermark: { text, color, alpha, size, moves } }: WatermarkPreviewProps) {
  const example = text.replaceAll(/\{(?:id|name|email|ip)\}/g, (name) => EXAMPLES[name] ?? name)
  const shown = example.replaceAll('{date}', new Date().toISOString().slice(0, 10))
  const url = video && posterUrl(video, 640)
  return (
    <figure className={styles.preview}>
      {url ? <img src={url} alt="" /> : <div className={styles.plain} />}
      <span className={styles.watermark} data-moves={moves || undefined} style={{ color, opacity: alpha, fontSize: size }}>
        {shown}
      </span>
      <figcaption>{video ? 'As a viewer may see it, on the poster' : 'As a viewer may see it'}</figcaption>
    </figure>
  )
}
