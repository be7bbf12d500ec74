import { Button } from '@mantine/core'
import { UploadIcon } from '../ui/icons.tsx'
import styles from './drop-zone.module.css'
import { FileInputs } from './file-inputs.tsx'

/** A place to drop videos on, with a button for those who would rather choose. A drop counts anywhere on the page. */
export function DropZone() {
  return (
    <FileInputs>
      {({ chooseFiles, chooseFolder }) => (
        <div className={styles.zone}>
          <UploadIcon size={36} />
          <p>
            <strong>Drop videos or whole folders here</strong>
          </p>
          <div className={styles.buttons}>
            <Button onClick={chooseFiles}>Choose videos</Button>
            <Button variant="default" onClick={chooseFolder}>
              Choose a folder
            </Button>
          </div>
        </div>
      )}
    </FileInputs>
  )
}
