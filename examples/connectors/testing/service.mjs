// The service, for the tests of the connectors: the real binary, on SQLite and on Postgres.
//
// FORMSVC_BIN names the binary, FORMSVC_TEST_POSTGRES a Postgres database (make test-connectors sets both).
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const binary = process.env.FORMSVC_BIN
assert.ok(binary, 'FORMSVC_BIN must name the formsvc binary; "make test-connectors" builds it')

// One for all servers: they work on the same Postgres database, also those that other tests start.
const secretKeys = createHash('sha256').update('the connectors').digest('hex')

// Returns the databases to test on. In continuous integration none may be missing.
export function databases() {
  const postgres = process.env.FORMSVC_TEST_POSTGRES
  assert.ok(postgres || process.env.CI !== 'true', 'FORMSVC_TEST_POSTGRES is not set')
  if (!postgres) console.error('WARNING: FORMSVC_TEST_POSTGRES is not set; tests on Postgres are SKIPPED')
  return [{ name: 'SQLite' }, ...(postgres ? [{ name: 'Postgres', dsn: postgres }] : [])]
}

// Waits until probe returns something true, and returns that. It fails after a minute, or as long as that takes.
export async function eventually(what, probe, patience = 60_000) {
  for (const end = Date.now() + patience; ;) {
    const got = await probe()
    if (got) return got
    if (Date.now() > end) throw new Error(`gave up waiting: ${what}`)
    await sleep(20)
  }
}

// Starts a server on an account of its own. It may send webhooks to this machine, tries failed deliveries again after a
// second, and has no quota. Its stop() must be called at the end; t.after(() => service.stop()) does.
export function startService(database, ...flags) {
  return startAsItIs(database, '--quota', '0', '--webhook-allow', '127.0.0.0/8', ...flags)
}

// The same with the quota that it has by default, and it sends nothing to this machine.
export async function startAsItIs(database = { name: 'SQLite' }, ...flags) {
  const service = new Service(database, await mkdtemp(join(tmpdir(), 'formsvc-connectors-')), flags)
  await service.start()
  service.account = `connectors-${randomBytes(6).toString('hex')}`
  await service.cli('accounts', 'create', service.account)
  service.key = await service.newKey('all')
  return service
}

class Service {
  constructor(database, data, flags) {
    this.data = data
    this.flags = flags
    this.log = ''
    this.where = ['--data', data, ...(database.dsn ? ['--db', database.dsn] : [])]
    this.address = '127.0.0.1:0'
  }

  get environment() {
    return { PATH: process.env.PATH, HOME: this.data, FORMSVC_SECRET_KEYS: secretKeys }
  }

  // Starts the server; the second time where it was before.
  async start() {
    const from = this.log.length
    const child = spawn(binary, ['serve', '--addr', this.address, '--log-format', 'json',
      '--webhook-retries', '1s,1s,1s', ...this.where, ...this.flags], { env: this.environment, stdio: ['ignore', 'ignore', 'pipe'] })
    this.child = child
    this.ended = new Promise(resolve => child.once('exit', resolve))
    child.stderr.setEncoding('utf8').on('data', text => { this.log += text })
    const [, address] = await eventually('formsvc serves', () => {
      assert.equal(child.exitCode, null, `formsvc ended:\n${this.log}`)
      return /"msg":"serving","addr":"([^"]+)"/.exec(this.log.slice(from))
    })
    this.address = address
    this.url = `http://${address}`
  }

  // Ends the server with a signal and starts it again.
  async restart(signal = 'SIGTERM') {
    await this.end(signal)
    await this.start()
  }

  async end(signal = 'SIGTERM') {
    this.child.kill(signal)
    await this.ended
  }

  async stop() {
    await this.end()
    await rm(this.data, { recursive: true, force: true })
  }

  // Runs a management command and returns what it printed.
  async cli(...args) {
    const { stdout } = await promisify(execFile)(binary, [...args, ...this.where], { env: this.environment })
    return stdout.trim()
  }

  newKey(permissions) {
    return this.cli('keys', 'create', '--name', 'connector', '--permissions', permissions, '--account', this.account)
  }

  // Makes a request and returns its status, its headers and its body, decoded when it is JSON. An object as body is sent
  // as JSON. It fails unless the status is the one that is wanted; without one, any 2xx is.
  async request(method, path, { body, headers = {}, status, key = this.key } = {}) {
    const json = body !== undefined && !(body instanceof Uint8Array) && !(body instanceof FormData)
    const answer = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(json && { 'content-type': 'application/json' }), ...headers },
      body: json ? JSON.stringify(body) : body,
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    assert.ok(status ? answer.status === status : answer.ok, `${method} ${path}: ${answer.status} ${bytes}`)
    const type = answer.headers.get('content-type') ?? ''
    return { status: answer.status, headers: answer.headers, body: /\bjson\b/.test(type) ? JSON.parse(bytes) : bytes }
  }

  async get(path) {
    return (await this.request('GET', path)).body
  }

  async post(path, body) {
    return (await this.request('POST', path, { body })).body
  }

  // Makes a campaign and returns it.
  campaign(title = 'Guest book', more = {}) {
    return this.post('/v1/campaigns', { title, ...more })
  }

  // Makes a response of a campaign and returns it.
  response(campaign, responses = { note: { value: ['Grüße, 世界'] } }) {
    return this.post(`/v1/campaigns/${campaign.uuid}/responses`, { user: { email: 'ada@example.com' }, responses })
  }

  async webhooks() {
    return (await this.get('/v1/webhooks')).items
  }
}
