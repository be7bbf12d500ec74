// Checked before anything else is loaded: the database's binary crashes without a word under an older Node.
const [major] = process.versions.node.split('.')
if (major !== '26') {
  process.stderr.write(
    `Reelgate needs Node 26 and this is Node ${process.versions.node}. Start it with npm start or npx reelgate, which bring the right one.\n`,
  )
  process.exit(1)
}
// Whatever folder the data lie in: the database shows titles and hashes of keys to whoever may read it.
process.umask(0o077)
const { runCommandLine } = await import('./cli/command-line.ts')
process.exitCode = await runCommandLine(process.argv)
