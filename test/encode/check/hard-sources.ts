import { footage } from '../../footage.ts'
import { keepVideo } from '../../videos.ts'
import { ffmpeg } from '../videos.ts'

// Sources that are hard to encode, or of which a small picture shows little. All are encoded at each rung that they have.

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '12', '-pix_fmt', 'yuv420p']
const drawn = (source: string, seconds = 9) => ['-f', 'lavfi', '-i', source, '-t', String(seconds), ...X264]
const filmed = (file: string, filters: string) => ['-i', file, '-vf', filters, '-an', ...X264]
const NOISE = 'noise=alls=100:allf=t'

/** What ffmpeg is given to make each. */
export const HARD_SOURCES: { readonly [is: string]: () => readonly string[] } = {
  confetti: () => drawn(`color=gray:s=192x108:r=30,${NOISE},scale=1280:720:flags=neighbor`),
  noise: () => drawn(`color=gray:s=1280x720:r=30,noise=alls=100:allf=t+u`, 5),
  'grain in the dark': () => drawn('gradients=s=1280x720:r=24:speed=0.02,eq=brightness=-0.25,noise=alls=25:allf=t'),
  'large spots that change with each frame': () => drawn(`color=gray:s=64x36:r=25,${NOISE},scale=1280:720:flags=bicubic`),
  life: () =>
    drawn('life=s=320x180:mold=10:r=30:ratio=0.3:death_color=#C83232:life_color=#00ff00:seed=3,scale=1280:720:flags=neighbor'),
  water: () => drawn('color=gray:s=320x180:r=25,noise=alls=80:allf=t,tmix=frames=8,scale=1280:720:flags=bicubic,eq=contrast=2.5'),
  'slides with one frame a second': () =>
    drawn(
      "color=white:s=1920x1080:r=1,drawtext=text='Lecture %{n} of Analysis':fontsize=120:x=100:y=100+60*n,drawbox=x=200*mod(n\\,5):y=600:w=300:h=200:color=blue:t=fill",
      21,
    ),
  'a screen whose rate changes': () => [
    ...['-f', 'lavfi', '-i', 'testsrc2=r=30:d=20:s=1280x720', '-vf', "select='if(between(t,8,10),1,not(mod(n,15)))'"],
    ...['-fps_mode', 'vfr', ...X264],
  ],
  credits: () =>
    drawn(
      "color=black:s=1280x720:r=24,drawtext=text='Directed by A and B\\, written by C':fontsize=60:fontcolor=white:x=100:y=720-80*t",
    ),
  'a fade': () => drawn('testsrc2=s=1280x720:r=25,fade=in:0:100,fade=out:125:75,noise=alls=8:allf=t'),
  'flashes of white': () => drawn("color=black:s=640x360:r=25,geq=lum='if(mod(floor(N/3),2),235,16)':cb=128:cr=128"),
  'a cut with each second frame': () => drawn("testsrc2=s=1280x720:r=25,hue=h='floor(n/2)*47':b='sin(floor(n/2)*2.1)*3'"),
  mandelbrot: () => drawn('mandelbrot=s=1280x720:r=30:end_scale=0.1'),
  'a strip': () => drawn('testsrc2=s=1600x100:r=25', 5),
  'a few pixels': () => drawn('testsrc2=s=64x36:r=25', 5),
  'two fields a frame': () => [
    ...[
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=720x576:r=50:d=8,interlace',
      '-c:v',
      'mpeg2video',
      '-flags',
      '+ildct+ilme',
      '-q:v',
      '3',
      '-f',
      'mpegts',
    ],
  ],
  'a dark room': () => filmed(footage.movieHello, 'eq=brightness=-0.4:contrast=0.5,noise=alls=12:allf=t'),
  'a shaking camera': () =>
    filmed(footage.movieHello, "crop=1000:560:x='140+100*sin(n*1.7)':y='80+70*cos(n*2.3)',scale=1280:720"),
  'an upright phone': () => filmed(footage.movieHello, 'transpose=1'),
  'full HD': () => filmed(footage.movieHello, 'scale=1920:1080'),
  'three minutes of scenes': () => ['-i', footage.wannaworktogether, '-c', 'copy'],
  'a scene that a camera pans over': () => [
    ...['-ss', '60', '-t', '13', '-i', footage.wannaworktogether],
    ...['-vf', "scale=800:450,crop=640:360:x='80+80*sin(n/20)':y='45+45*cos(n/25)'", ...X264, '-c:a', 'aac'],
  ],
  'a moving drawing with sound': () => [
    ...[
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=640x360:r=25:d=13',
      '-f',
      'lavfi',
      '-i',
      'anoisesrc=color=pink:seed=7:amplitude=0.5:d=13',
    ],
    ...[...X264, '-c:a', 'aac'],
  ],
  birds: () => ['-i', footage.cockatoo, '-c', 'copy'],
}

/** Makes the video, or finds it made. */
export async function makeHardSource(is: string): Promise<string> {
  const args = HARD_SOURCES[is]?.() ?? []
  const ends = args.includes('mpegts') ? '.ts' : '.mp4'
  return keepVideo(args.join(' '), ends, (kept) => ffmpeg(...args, kept))
}
