import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findFreePort } from '../free-port.ts'
import { startNginx } from '../nginx.ts'
import { PLUGIN } from './scene.ts'

const run = promisify(execFile)
const UNPACKED = join(import.meta.dirname, '../../.cache/wordpress/usr/share/wordpress')

export type WordPress = Awaited<ReturnType<typeof startWordPress>>

/**
 * Debian's WordPress with MariaDB and the plug-in, behind a page cache that knows no visitors: it stores each page for everyone, whatever its
 * headers say, and keeps it for a month.
 */
export async function startWordPress() {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-wordpress-'))
  const port = await findFreePort()
  const cache = await startNginx((own) => ({
    http: `proxy_cache_path ${own}/pages keys_zone=pages:1m;`,
    server: `
      proxy_set_header Host $http_host;
      location /healthz { return 200; }
      location ~ ^/(wp-admin|wp-login|wp-json|wp-content|wp-includes) { proxy_pass http://127.0.0.1:${port}; }`,
    location: `
      proxy_pass http://127.0.0.1:${port};
      proxy_cache pages; proxy_cache_valid 30d; proxy_cache_key $request_uri;
      proxy_ignore_headers Cache-Control Expires Set-Cookie Vary; proxy_hide_header Set-Cookie;`,
  }))
  const database = await startMariaDb(folder)
  await layOut(folder, cache.url)
  let php: ChildProcess | undefined

  /** @param days by which its clock is behind */
  async function startPhp(days = 0): Promise<void> {
    await stopPhp()
    const server = ['php', '-S', `127.0.0.1:${port}`, '-t', join(folder, 'wordpress')]
    const [command = '', ...args] = days === 0 ? server : ['faketime', '-f', `-${days}d`, ...server]
    php = spawn(command, args, { stdio: 'ignore', env: { ...process.env, PHP_CLI_SERVER_WORKERS: '4' }, detached: true })
    await untilAnswers(`http://127.0.0.1:${port}/wp-includes/version.php`)
  }

  async function stopPhp(): Promise<void> {
    if (!php?.pid) return
    process.kill(-php.pid) // its workers, too
    await once(php, 'exit')
    php = undefined
  }

  /** Runs code inside WordPress. @returns what it prints */
  async function evaluate(code: string): Promise<string> {
    const { stdout } = await run('php', ['-d', 'error_reporting=0', '-r', `require '${folder}/wordpress/wp-load.php'; ${code}`])
    return stdout
  }

  await run('php', [
    '-d',
    'error_reporting=0',
    '-r',
    `define('WP_INSTALLING', true); require '${folder}/wordpress/wp-load.php'; ${INSTALL}`,
  ])
  await evaluate("require_once ABSPATH . 'wp-admin/includes/plugin.php'; activate_plugin('reelgate/reelgate.php');")
  await startPhp()
  return {
    url: cache.url,
    evaluate,
    startPhp,
    /** Publishes a post. @returns its address */
    async publish(content: string, title = 'Lesson'): Promise<string> {
      const post = JSON.stringify({ post_title: title, post_content: content, post_status: 'publish' })
      return `${cache.url}/?p=${await evaluate(`echo wp_insert_post(wp_slash(json_decode(${quote(post)}, true)));`)}`
    },
    async remove() {
      await stopPhp()
      await cache.remove()
      database.kill()
      await once(database, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export function quote(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`
}

const INSTALL = `
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_wp_mail', '__return_true');
wp_install('School', 'owner', 'owner@example.org', true, '', 'secret');
switch_theme('plain');`

async function startMariaDb(folder: string): Promise<ChildProcess> {
  const data = join(folder, 'database')
  const socket = join(folder, 'socket')
  await run('mariadb-install-db', [
    '--no-defaults',
    '--user=root',
    `--datadir=${data}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
  ])
  const options = ['--no-defaults', '--user=root', `--datadir=${data}`, `--socket=${socket}`, '--skip-networking']
  const server = spawn('mariadbd', [...options, '--innodb-flush-log-at-trx-commit=0'], { stdio: 'ignore' })
  const create = `$db = @new mysqli('localhost', 'root', '', '', 0, ${quote(socket)}); exit($db->query('create database wp') ? 0 : 1);`
  while (
    !(await run('php', ['-r', create]).then(
      () => true,
      () => false,
    ))
  ) {
    if (server.exitCode !== null) throw new Error('MariaDB does not start')
    await pause(100)
  }
  return server
}

async function untilAnswers(url: string): Promise<void> {
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  )
    await pause(100)
}

/** WordPress's files, a theme of one page, and the plug-in. */
async function layOut(folder: string, url: string): Promise<void> {
  const site = join(folder, 'wordpress')
  const theme = join(site, 'wp-content/themes/plain')
  await cp(UNPACKED, site, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !/wp-config\.php$|\.htaccess$/.test(path),
  })
  await cp(PLUGIN, join(site, 'wp-content/plugins/reelgate'), { recursive: true })
  await mkdir(theme, { recursive: true })
  await mkdir(join(site, 'wp-content/mu-plugins'), { recursive: true })
  await writeFile(join(site, 'wp-config.php'), config(join(folder, 'socket'), url))
  await writeFile(join(theme, 'style.css'), '/* Theme Name: Plain */')
  await writeFile(join(theme, 'index.php'), THEME)
  await writeFile(join(site, 'wp-content/mu-plugins/school.php'), MEMBERSHIP)
}

const config = (socket: string, url: string) => `<?php
define('DB_NAME', 'wp'); define('DB_USER', 'root'); define('DB_PASSWORD', ''); define('DB_HOST', ${quote(`localhost:${socket}`)});
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $name) define($name, "test $name");
define('WP_HOME', ${quote(url)}); define('WP_SITEURL', ${quote(url)});
define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEBUG', false);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
`

const THEME = `<!doctype html><html <?php language_attributes(); ?>><head><?php wp_head(); ?></head><body <?php body_class(); ?>>
<?php while ( have_posts() ) { the_post(); the_title( '<h1>', '</h1>' ); the_content(); } wp_footer(); ?></body></html>
`

/** As a membership plug-in does: text between [members] and [/members] is for those who are signed in. And what a theme may do about completed lessons. */
const MEMBERSHIP = `<?php
add_shortcode( 'members', function ( $attributes, $content ) { return is_user_logged_in() ? do_shortcode( $content ) : 'For members.'; } );
add_action( 'reelgate_completed', function ( $user, $video, $post ) { update_user_meta( $user, 'completed', $post ); }, 10, 3 );
`
