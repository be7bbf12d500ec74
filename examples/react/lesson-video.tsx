import { useEffect, useState } from 'react'

type Otp = { otp: string; playbackInfo: string }

/** One lesson's video. The page loads https://video.example.org/v2/player.js, which defines the element. */
export function LessonVideo({ lesson, onEnded }: { lesson: string; onEnded?: () => void }) {
  const [video, setVideo] = useState<Otp>()
  const [failed, setFailed] = useState(false)
  const [loads, setLoads] = useState(1) // each is another OTP

  useEffect(() => {
    const leaving = new AbortController()
    fetchOtp(lesson, leaving.signal)
      .then(setVideo)
      .catch(() => leaving.signal.aborted || setFailed(true))
    return () => leaving.abort()
  }, [lesson, loads])

  if (failed) return <p role="alert">The video is not available at the moment.</p>
  if (!video) return <p role="status">Loading the video.</p>
  return (
    <reelgate-player
      otp={video.otp}
      playbackInfo={video.playbackInfo}
      onstatusChange={({ detail }) => detail === 'otpNeeded' && loads < 3 && setLoads(loads + 1)}
      onended={onEnded}
    />
  )
}

async function fetchOtp(lesson: string, signal: AbortSignal): Promise<Otp> {
  const answer = await fetch(`/otp?lesson=${encodeURIComponent(lesson)}`, { method: 'POST', signal })
  if (!answer.ok) throw new Error(`The server answered ${answer.status}`)
  return answer.json()
}
