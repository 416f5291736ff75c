// Runs the code of ../../README.md and of ../../pipedream.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { startService } from '../../testing/service.mjs'
import { zapUrl } from './support.mjs'

const page = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
const blocks = new Map([...page.matchAll(/^```(\w+) ([\w-]+)\n(.*?)^```$/gms)].map(([, , name, code]) => [name, code]))

async function setUp(t) {
  const service = await startService()
  const directory = await mkdtemp(join(tmpdir(), 'formsvc-readme-'))
  t.after(async () => {
    await service.stop()
    await rm(directory, { recursive: true })
  })
  return { service, directory }
}

async function load(directory, name) {
  const path = join(directory, `${name}.mjs`)
  await writeFile(path, blocks.get(name))
  return import(pathToFileURL(path))
}

test('the commands under "Plain HTTP" and "Polling"', async t => {
  const { service, directory } = await setUp(t)
  const receiver = await zapUrl(t)
  const variables = { FORMS: service.url, KEY: service.key, ORDER: randomUUID(), RECEIVER: receiver.url,
    SECRET: randomBytes(32).toString('hex'), TOKEN: randomUUID() }
  const ran = new Set()
  const run = async name => {
    ran.add(name)
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', blocks.get(name)],
      { cwd: directory, env: { ...process.env, ...variables } })
    return stdout && /^[{[]/.test(stdout) ? JSON.parse(stdout) : stdout
  }

  assert.equal((await run('me')).key.name, 'connector')
  const campaign = await service.campaign('The Guest Book')
  await service.campaign('Another')
  const found = await run('campaigns')
  assert.deepEqual(found.items.map(({ uuid }) => uuid), [campaign.uuid])
  variables.CAMPAIGN = campaign.uuid

  const response = await run('response')
  assert.deepEqual(await run('response'), response)
  assert.deepEqual(response.responses, { languages: { value: ['English', 'French'] } })
  variables.RESPONSE = response.uuid
  assert.equal((await run('status')).status, 'validated')
  const comment = await run('comment')
  assert.deepEqual(await run('comment'), comment)

  const bytes = Buffer.concat([Buffer.alloc(10), randomBytes(1_000_000)])
  await writeFile(join(directory, 'receipt.pdf'), bytes)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const file = await run('upload')
  assert.deepEqual(await run('upload'), file)
  assert.deepEqual([file.name, file.contentType, file.module, file.sha256], ['receipt.pdf', 'application/pdf', 'receipt', sha256])
  const raw = await run('upload-raw')
  assert.deepEqual([raw.name, raw.contentType, raw.module, raw.sha256], ['reçu.pdf', 'application/pdf', 'receipt', sha256])
  variables.FILE = raw.uuid
  await run('download')
  assert.ok(bytes.equals(await readFile(join(directory, 'downloaded.pdf'))))

  const webhook = await run('subscribe')
  assert.equal((await run('subscribe')).uuid, webhook.uuid)
  variables.WEBHOOK = webhook.uuid
  await run('test-event')
  const delivery = await receiver.next()
  assert.equal(JSON.parse(delivery.body).test, true)
  assert.equal(delivery.headers['x-token'], variables.TOKEN)
  assert.equal((await run('deliveries')).items.length, 1)
  await writeFile(join(directory, 'body.json'), delivery.body)
  assert.equal((await run('signature')).trim(), delivery.headers['x-service-signature'])
  const samples = await run('samples')
  assert.deepEqual(samples.items.map(({ data }) => data.response.uuid), [response.uuid])
  await run('unsubscribe')
  await assert.rejects(run('unsubscribe'), /404/)
  assert.deepEqual(await service.webhooks(), [])

  const first = await run('poll')
  assert.deepEqual(first.items, samples.items)
  variables.CURSOR = first.nextCursor
  assert.deepEqual((await run('poll-next')).items, [])
  const { uuid } = await service.response(campaign)
  assert.deepEqual((await run('poll-next')).items.map(({ data }) => data.response.uuid), [uuid])

  const commands = [...page.matchAll(/^```sh ([\w-]+)$/gm)].map(([, name]) => name)
  assert.deepEqual(commands.filter(name => !ran.has(name)), [])
})

test('the check of a delivery in Node', async t => {
  const { service, directory } = await setUp(t)
  const { verify } = await load(directory, 'verify')
  const receiver = await zapUrl(t)
  const campaign = await service.campaign()
  for (const secret of [randomBytes(32).toString('hex'), `whsec_${randomBytes(32).toString('base64')}`]) {
    const { uuid } = await service.post('/v1/webhooks', { url: receiver.url, events: ['response.created'], secret })
    await service.response(campaign)
    const { headers, body } = await receiver.next()
    await service.request('DELETE', `/v1/webhooks/${uuid}`)
    assert.deepEqual(verify(headers, body, secret), JSON.parse(body))
    assert.throws(() => verify(headers, Buffer.concat([body, Buffer.from(' ')]), secret), /signature does not fit/)
    assert.throws(() => verify({}, body, secret), /signature does not fit/)
    assert.throws(() => verify(headers, body, ''), /signature does not fit/)
    t.mock.method(Date, 'now', () => headers['webhook-timestamp'] * 1000 + 301_000)
    assert.throws(() => verify(headers, body, secret), /more than five minutes old/)
    t.mock.restoreAll()
  }
})

// Only what Pipedream's documentation says of its runtime is imitated.
test('the component for Pipedream', async t => {
  const { service } = await setUp(t)
  const { default: component } = await import('../../pipedream/formsvc.mjs')
  const receiver = await zapUrl(t)
  const kept = new Map()
  const emitted = []
  const answers = []
  const runtime = {
    ...component.methods,
    baseUrl: service.url,
    apiKey: service.key,
    events: ['response.created', 'response.status_changed'],
    http: { endpoint: receiver.url, respond: answer => answers.push(answer) },
    db: { get: key => kept.get(key), set: (key, value) => kept.set(key, value) },
    $emit: (item, meta) => emitted.push({ item, meta }),
  }
  const hook = name => component.hooks[name].call(runtime)
  const campaign = await service.campaign()
  const earlier = await service.response(campaign)

  await hook('deploy')
  assert.deepEqual(emitted.splice(0).map(({ item }) => item.data.response.uuid), [earlier.uuid])

  await hook('activate')
  await hook('activate')
  const [webhook, ...others] = await service.webhooks()
  assert.deepEqual(others, [])
  assert.deepEqual([webhook.url, webhook.events, webhook.campaignUuid], [receiver.url, runtime.events, null])

  const { reference } = await service.response(campaign)
  const { headers, body } = await receiver.next()
  const bodyRaw = body.toString()
  await component.run.call(runtime, { headers, body: JSON.parse(bodyRaw), bodyRaw })
  const [{ item, meta }] = emitted.splice(0)
  assert.deepEqual(item, JSON.parse(bodyRaw))
  assert.deepEqual(meta, { id: item.id, ts: Date.parse(item.timestamp), summary: `response.created ${reference}` })
  assert.equal(answers.shift().status, 200)

  await component.run.call(runtime, { headers, bodyRaw: bodyRaw.replace('ada@', 'eve@') })
  await component.run.call(runtime, { headers: {}, bodyRaw })
  t.mock.method(Date, 'now', () => headers['webhook-timestamp'] * 1000 + 301_000)
  await component.run.call(runtime, { headers, bodyRaw })
  t.mock.restoreAll()
  assert.deepEqual(answers.splice(0).map(({ status }) => status), [401, 401, 401])
  assert.deepEqual(emitted, [])

  await hook('deactivate')
  await hook('deactivate')
  assert.deepEqual(await service.webhooks(), [])
  await component.run.call(runtime, { headers, bodyRaw })
  assert.equal(answers.shift().status, 401)
})

test('the JSON for Make is JSON', () => {
  assert.equal(JSON.parse(blocks.get('make-attach')).response.data.externalHookId, '{{body.uuid}}')
  assert.match(JSON.parse(blocks.get('make-detach')).url, /\{\{webhook\.externalHookId\}\}$/)
})

test('links on the pages lead somewhere', async () => {
  const anchors = text => new Set([...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-')))
  for (const path of ['../../README.md', '../README.md']) {
    const text = await readFile(new URL(path, import.meta.url), 'utf8')
    for (const [, target] of text.matchAll(/\]\(([^)]+)\)/g)) {
      if (/^https:/.test(target)) continue
      const [file, anchor] = target.split('#')
      const where = new URL(file || path.split('/').pop(), new URL(path, import.meta.url))
      const content = await readFile(where, 'utf8').catch(error => assert.equal(error.code, 'EISDIR', `${path}: ${target}`))
      if (anchor) assert.ok(anchors(content).has(anchor), `${path}: ${target}`)
    }
  }
})
