// The n8n that all tests share.
import { after, before } from 'node:test'

import { startN8n } from './n8n.mjs'

export let n8n

before(async () => { n8n = await startN8n() })
after(() => n8n?.stop())
