import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import '../ui/mantine.css'
import '../ui/tokens.css'
import '../ui/base.css'
import { signInQuery } from '../sign-in/queries.ts'
import { ConnectionNotice } from '../ui/connection-notice.tsx'
import { nameMissingScripts } from '../ui/missing-script.tsx'
import { createQueryClient } from '../ui/query-client.ts'
import { allowStyleElements, styleNonce } from '../ui/style-nonce.ts'
import { cssVariablesResolver, theme } from '../ui/theme.ts'
import { followTranslatedTexts } from '../ui/translated-texts.ts'
import { createPages } from './router.tsx'

allowStyleElements()
nameMissingScripts()
followTranslatedTexts(document)
const queries = createQueryClient(() => {
  if (!queries.getQueryData(signInQuery.queryKey)?.signedIn) return // it was an attempt to sign in
  queries.removeQueries({ queryKey: signInQuery.queryKey })
  void pages.invalidate() // leads to the sign-in, and from there back
})
const pages = createPages(queries)
const root = document.querySelector('#root')
if (!root) throw new Error('The page has no element with the id "root".')
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariablesResolver}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queries}>
        <ConnectionNotice />
        <RouterProvider router={pages} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
