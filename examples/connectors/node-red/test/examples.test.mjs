// The example flows: imported, set up as their descriptions say, and run. And what npm would publish.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { databases, eventually } from '../../testing/service.mjs'
import { folder, startBoth } from './nodered.mjs'

test('the package has what it needs and no more', async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--silent'], { cwd: folder })
  const files = JSON.parse(stdout)[0].files.map(({ path }) => path)
  for (const file of files) assert.match(file, /^(package\.json|README\.md|LICENSE|(lib|nodes|resources|examples)\/.+)$/)
  for (const file of ['README.md', 'LICENSE', 'lib/client.js', 'nodes/formsvc.js', 'nodes/formsvc.html', 'nodes/icons/formsvc.svg',
    'nodes/locales/en-US/formsvc.json', 'nodes/locales/en-US/formsvc.html', 'resources/editor.js']) {
    assert.ok(files.includes(file), `${file} is missing`)
  }
})

describe('examples', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: false }, () => {
    let service, nodeRed, campaign

    before(async () => {
      [service, nodeRed] = await startBoth(database)
      campaign = await service.campaign('Guest book')
      const flows = []
      for (const file of await readdir(join(folder, 'examples'))) flows.push(...JSON.parse(await readFile(join(folder, 'examples', file), 'utf8')))
      // What users fill in after an import.
      await nodeRed.deploy(flows.map(node => {
        if (node.type === 'formsvc-account') return { ...node, baseUrl: service.url, credentials: { apiKey: service.key } }
        if (node.type === 'formsvc-in') return { ...node, publicUrl: nodeRed.publicUrl }
        return node
      }))
      await eventually('the triggers subscribe', async () => (await service.webhooks()).length === 2)
    })

    after(() => Promise.all([service?.stop(), nodeRed?.stop()]))

    test('a new response gets a comment and a status', async () => {
      const response = await service.response(campaign)
      const at = `/v1/campaigns/${campaign.uuid}/responses/${response.uuid}`
      await eventually('the status', async () => (await service.get(at)).status === 'validated')
      const { items } = await service.get(`${at}/comments`)
      assert.deepEqual(items.map(({ body }) => body), [`Received as ${response.reference}, thank you.`])
    })

    test('an uploaded file is kept', async () => {
      const response = await service.response(campaign)
      const bytes = Buffer.from([0, 255, 13, 10, 0])
      const file = await service.request('POST', `/v1/campaigns/${campaign.uuid}/responses/${response.uuid}/files`, {
        body: bytes, headers: { 'content-type': 'application/pdf', 'content-disposition': 'attachment; filename="../../evil.pdf"' },
      })
      // The file is there before its bytes are.
      const read = () => readFile(join(nodeRed.userDir, 'formsvc-files', file.body.uuid)).catch(() => Buffer.of())
      const kept = await eventually('the file', async () => { const b = await read(); return b.length >= bytes.length && b })
      assert.ok(bytes.equals(kept))
    })

    test('a web form makes a response with a file', async () => {
      const form = { campaign: campaign.uuid, email: 'eve@example.com', firstName: 'Eve', lastName: 'É', answers: { note: 'hello' }, letter: 'Grüße' }
      const answer = await nodeRed.post('/apply', form)
      assert.equal(answer.status, 201, JSON.stringify(answer.body))
      const file = await service.request('GET', `/v1/files/${answer.body.file}`)
      assert.equal(file.body.toString(), 'Grüße')
      const { items } = await service.get(`/v1/campaigns/${campaign.uuid}/responses?email=eve@example.com`)
      assert.equal(items[0].reference, answer.body.reference)
      const refused = await nodeRed.post('/apply', { ...form, email: 'nobody' })
      assert.equal(refused.status, 422)
      assert.match(refused.body.error, /email/)
    })
  })
})
