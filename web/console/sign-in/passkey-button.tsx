import { Button } from '@mantine/core'
import { KeyIcon } from '../ui/icons.tsx'

type PasskeyButtonProps = { passkey: { isPending: boolean; mutate(): void }; isDisabled?: boolean }

export function PasskeyButton({ passkey, isDisabled }: PasskeyButtonProps) {
  return (
    <Button
      variant="default"
      leftSection={<KeyIcon size={18} />}
      loading={passkey.isPending}
      disabled={isDisabled}
      onClick={() => passkey.mutate()}
    >
      Use a passkey
    </Button>
  )
}
