// The content security policy allows style elements with this page's nonce only. Style sheets and scripts are files of the server's own.

/** The nonce that the server has put into the page; browsers hide the attribute from style sheets, not from scripts. */
export function styleNonce(): string {
  return document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce ?? ''
}

/** Dialogs keep the page behind them from scrolling by a style element of react-style-singleton, which takes the nonce of bundlers. */
export function allowStyleElements(): void {
  Object.assign(globalThis, { __webpack_nonce__: styleNonce() })
}
