import { collectChanges } from '../../src/db/changed-tables.ts'
import type { Database } from '../../src/db/database.ts'
import { createPostgresCommitter } from '../../src/db/postgres/commit.ts'
import { openConnection } from '../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../src/db/postgres/dialect.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { createGroupCommitter } from '../../src/db/write.ts'

/**
 * Connections of one more server to a PostgreSQL that another has opened, without the lock that only one may have.
 * @param beforeRead waited for before each statement that reads outside a transaction
 */
export function connectSecondServer(
  url: string,
  beforeRead: (statement: string) => Promise<void> = async () => undefined,
): Pick<Database, 'db' | 'write'> & { close(): Promise<void> } {
  const connection = openConnection({ url, settings: { default_transaction_isolation: 'serializable' } })
  const { execute, takeChanges } = collectChanges(connection.execute)
  const committer = createPostgresCommitter(createPostgresKysely(execute, connection.close), connection, toPublicError, true)
  const reader = openConnection({ url, settings: { default_transaction_read_only: 'on' } })
  const read: typeof reader.execute = async (query) => {
    await beforeRead(query.sql)
    return reader.execute(query)
  }
  return {
    db: createPostgresKysely(read, reader.close),
    write: createGroupCommitter({ ...committer, takeChanges }),
    close: async () => void (await Promise.all([connection.close(), reader.close()])),
  }
}
