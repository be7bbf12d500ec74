import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './mantine.css'
import './tokens.css'
import './base.css'
import { createQueryClient } from './query-client.ts'
import { createPages } from './router.tsx'
import { allowStyleElements, styleNonce } from './style-nonce.ts'
import { cssVariablesResolver, theme } from './theme.ts'

allowStyleElements()
const queries = createQueryClient()
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
        <RouterProvider router={pages} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
