import styles from './csv-link.module.css'

/** Downloads a list as CSV. */
export function CsvLink({ of, href, children = 'Download as CSV' }: { of: string; href: string; children?: string }) {
  return (
    <p className={styles.line}>
      <a href={href} download>
        {children}
        <span className="visually-hidden">: {of}</span>
      </a>
    </p>
  )
}
