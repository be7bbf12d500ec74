import { Failure } from '../../errors.ts'

/** All videos lie in the one folder `root`. @throws Failure `not-found` for another one */
export function refuseOtherFolders(folderId: string | undefined): void {
  if (folderId !== undefined && folderId !== '' && folderId !== 'root') throw new Failure('not-found', 'Folder not found')
}
