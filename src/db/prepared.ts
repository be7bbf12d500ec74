import {
  type Compilable,
  type CompiledQuery,
  DeleteQueryNode,
  type DialectAdapter,
  InsertQueryNode,
  type RawBuilder,
  sql,
  UpdateQueryNode,
} from 'kysely'
import type { Db } from './database.ts'

/** Where a value will be bound. */
export type ValueOf<Values> = <Name extends keyof Values & string>(name: Name) => RawBuilder<Values[Name]>

/**
 * A statement that is built and compiled once; each call only binds its values. For the few that run with every request:
 * building one takes several times as long as SQLite needs to run it.
 * @param build returns the statement, with `value(name)` where a value will be bound
 */
export function prepared<Values extends Record<string, unknown>>() {
  return <Row>(build: (db: Db, value: ValueOf<Values>) => Compilable<Row> | RawBuilder<Row>) => {
    const byDialect = new WeakMap<DialectAdapter, CompiledQuery<Row>>()
    return async (db: Db, values: Values) => {
      const executor = db.getExecutor()
      const { adapter } = executor
      let compiled = byDialect.get(adapter)
      if (!compiled) {
        compiled = build(db, (name) => sql.val(new Placeholder(name)).$castTo()).compile(db)
        byDialect.set(adapter, compiled)
      }
      const parameters = compiled.parameters.map((parameter) =>
        parameter instanceof Placeholder ? values[parameter.name] : parameter,
      )
      const query = { ...compiled, parameters }
      // Kysely would pass the result through its plugins, which have nothing to rename in one without rows.
      if (isChange(compiled)) return executor.provideConnection((connection) => connection.executeQuery<Row>(query))
      return db.executeQuery<Row>(query)
    }
  }
}

/** Whether a statement changes rows and returns none. */
function isChange({ query }: CompiledQuery): boolean {
  const changes = InsertQueryNode.is(query) || UpdateQueryNode.is(query) || DeleteQueryNode.is(query)
  return changes && query.returning === undefined
}

class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}
