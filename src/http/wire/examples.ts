/** Example values in the docs. */
export const EXAMPLE = {
  videoId: '4d9b5ab0c1fe4d0c8a2f6c7e13a97d52',
  folderId: '7c2f19e0a6b84f6f9d3e5b1a0c4d8e21',
  fileId: '7021',
  uploadId: '0d5c7b9e2f4a41d3b6c8e0f1a2b3c4d5',
  webhookId: '0f8fad5bd9cb469fa16570867728950e',
  videoUrl: 'https://example.org/video.mp4',
  accountId: '2b7d1f40c9a84e3d8f6a5b4c3d2e1f00',
  userId: '61c0a3f58e2b4d7c9a1f0e3d5b7c9f42',
  signInId: '0c9f42b7d1f40c9a84e3d8f6a5b4c3d2',
  keyId: '9a3e1c5b7d2f4a608b1c3d5e7f9a0b2c',
  userName: 'ann@example.org',
  email: 'notices@example.org',
  password: 'a lamp in the projection room',
  linkToken: 'TOKEN',
  passkeyId: 'PASSKEY',
  webhookUrl: 'https://example.org/hooks',
} as const
