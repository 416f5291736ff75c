// Node-RED, for the tests: the real one, with this package installed as users install it, and with the settings that it
// generates, unless a test is about others.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { eventually, startService } from '../../testing/service.mjs'

export const folder = fileURLToPath(new URL('..', import.meta.url))
const program = createRequire(import.meta.url).resolve('node-red/red.js')
const npm = (args, cwd) => promisify(execFile)('npm', [...args, '--silent', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd })

let installed
// Installs this package into an empty folder, once for all servers of a test file.
function install() {
  installed ??= (async () => {
    const dir = await mkdtemp(join(tmpdir(), 'formsvc-nodered-package-'))
    process.once('exit', () => execFile('rm', ['-rf', dir]).unref())
    await writeFile(join(dir, 'package.json'), '{"name":"node-red-project","private":true}')
    await installInto(dir)
    return dir
  })()
  return installed
}

// Packs this package and installs the tarball into a user directory, as the documentation has it.
async function installInto(dir) {
  const { stdout } = await npm(['pack', '--json', '--pack-destination', dir], folder)
  await npm(['install', '--offline', join(dir, JSON.parse(stdout)[0].filename)], dir)
}

// Does what the documentation says from the beginning: Node-RED makes its user directory, the package is installed there, and
// Node-RED is started again.
export async function startAsDocumented() {
  const server = new NodeRed(await mkdtemp(join(tmpdir(), 'formsvc-nodered-')), await freePort(), {})
  try {
    await server.start()
    await server.end()
    await installInto(server.userDir)
    await server.start()
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

// Returns a port that nobody listens on, below those that outgoing connections and other tests' servers get.
async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000)
    const server = createServer()
    const free = await new Promise(resolve => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!free) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
}

// Starts Node-RED. Its stop() must be called at the end. The options:
//
//   settings   the text of a settings.js, in place of the one that Node-RED generates
//   adminRoot  where that has the editor, and nodeRoot, where the HTTP nodes
//   protocol   https, if that is so
//   prepare    what to do with the user directory before
//   embedded   {text, args}: the text of a program that runs Node-RED; it gets a port, the user directory and args
export async function startNodeRed({ settings, prepare, ...how } = {}) {
  const userDir = await mkdtemp(join(tmpdir(), 'formsvc-nodered-'))
  await cp(await install(), userDir, { recursive: true })
  if (settings) await writeFile(join(userDir, 'settings.js'), settings)
  await prepare?.(userDir)
  const server = new NodeRed(userDir, await freePort(), how)
  await server.start().catch(async error => {
    await server.stop()
    throw error
  })
  return server
}

// Starts the service and Node-RED, and leaves neither behind when the other does not start.
export async function startBoth(database, ...flags) {
  const both = await Promise.allSettled([startService(database, ...flags), startNodeRed()])
  const failed = both.find(({ status }) => status === 'rejected')
  if (!failed) return both.map(({ value }) => value)
  await Promise.all(both.map(({ value }) => value?.stop()))
  throw failed.reason
}

class NodeRed {
  constructor(userDir, port, { adminRoot = '', nodeRoot = '', protocol = 'http', embedded }) {
    this.userDir = userDir
    this.command = embedded ? ['-e', embedded.text, port, userDir, ...embedded.args] : [program, '-u', userDir, '-p', port]
    // Where an embedding program finds Node-RED.
    this.cwd = embedded ? folder : userDir
    this.adminUrl = `${protocol}://127.0.0.1:${port}${adminRoot}`
    this.publicUrl = `${protocol}://127.0.0.1:${port}${nodeRoot}`
    this.output = ''
    // The latest record of each watched node, and how many there were.
    this.watching = new Map()
    this.watched = 0
  }

  async start() {
    const from = this.output.length
    const child = spawn(process.execPath, this.command.map(String),
      { cwd: this.cwd, env: { PATH: process.env.PATH, HOME: this.userDir }, stdio: ['ignore', 'pipe', 'pipe'] })
    this.child = child
    this.ended = new Promise(resolve => child.once('exit', resolve))
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => { this.output += text })
    await eventually('Node-RED serves', async () => {
      assert.equal(child.exitCode, null, `Node-RED ended:\n${this.output}`)
      return ['Server now running at', '] Started flows'].every(line => this.output.slice(from).includes(line))
    })
  }

  async end(signal = 'SIGTERM') {
    this.child.kill(signal)
    await this.ended
  }

  async stop() {
    await this.end('SIGKILL')
    await rm(this.userDir, { recursive: true, force: true })
  }

  // Makes a request to the admin API.
  async admin(method, path, body, headers = {}) {
    const answer = await fetch(this.adminUrl + path, {
      method, headers: { 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    const type = answer.headers.get('content-type') ?? ''
    return { status: answer.status, body: type.includes('json') ? JSON.parse(text) : text }
  }

  // Deploys flows: everything starts anew, or, with the type "nodes", what changed.
  async deploy(nodes, type = 'full') {
    // Nodes without a place are taken for configuration.
    const flows = nodes.map(node => (node.z ? { x: 0, y: 0, ...node } : node))
    const from = this.output.length
    const answer = await this.admin('POST', '/flows', { flows },
      { 'Node-RED-API-Version': 'v2', 'Node-RED-Deployment-Type': type })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    // Flows start after the answer. A deployment before they have would leave nodes behind that Node-RED has lost sight of.
    await eventually('flows have started', () => /\] Started /.test(this.output.slice(from)))
  }

  // Presses the button of an inject node.
  async inject(id) {
    const answer = await eventually(`inject ${id}`, async () => {
      const got = await this.admin('POST', `/inject/${id}`)
      return got.status !== 404 && got
    })
    assert.equal(answer.status, 200)
  }

  // Posts to an HTTP node and returns {status, headers, body}; body is decoded when it is JSON.
  async post(path, body, headers = {}) {
    const json = body !== undefined && !(body instanceof Uint8Array)
    const send = () => fetch(this.publicUrl + path, {
      method: 'POST', headers: { ...(json && { 'content-type': 'application/json' }), ...headers },
      body: json ? JSON.stringify(body) : body,
    })
    // Flows start after the answer to their deployment.
    const answer = await eventually(`POST ${path}`, async () => {
      const got = await send()
      return got.status !== 404 && got
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const decoded = (answer.headers.get('content-type') ?? '').includes('json') ? JSON.parse(bytes) : bytes
    return { status: answer.status, headers: answer.headers, body: decoded }
  }

  // Returns the messages that flows wrote with the nodes of record(), without those that are only half there.
  async messages(name = 'messages') {
    const text = await readFile(this.file(name), 'utf8').catch(() => '')
    return text.split('\n').slice(0, -1).map(line => JSON.parse(line))
  }

  file(name) {
    return join(this.userDir, `${name}.jsonl`)
  }

  // Returns what a node has shown beside itself since the latest watch() of it; the last is what it shows now.
  async statuses(id = 'trigger') {
    return (await this.messages(this.watching.get(id))).map(({ status: { fill, text } }) => `${fill}: ${text}`)
  }

  // Waits until a node shows what is wanted.
  shows(wanted, id) {
    let last
    return eventually(`the node shows ${wanted}`, async () => wanted.test(last = (await this.statuses(id)).at(-1) ?? '') && last)
      .catch(error => { throw new Error(`${error.message}; it shows ${last}\n${this.output}`) })
  }

  // Returns nodes that record what a node shows beside itself. Each call begins a new record, so that what a node showed before
  // a deployment can't be taken for what it shows after it.
  watch(id = 'trigger') {
    const name = `${id}-status-${++this.watched}`
    this.watching.set(id, name)
    return [
      { id: `${id}-watch`, z: 'flow', type: 'status', scope: [id], wires: [[`${id}-shown`]] },
      ...this.record(`${id}-shown`, name),
    ]
  }

  // Returns nodes that append what reaches the first one to a file.
  record(id, name = 'messages', z = 'flow') {
    return [
      {
        id, z, type: 'function', outputs: 1, wires: [[`${id}-file`]],
        func: 'const {req, res, ...rest} = msg; return {payload: JSON.stringify(rest)}',
      },
      { id: `${id}-file`, z, type: 'file', filename: this.file(name), filenameType: 'str', appendNewline: true, overwriteFile: 'false', wires: [[]] },
    ]
  }
}

export const tab = (more = {}) => ({ id: 'flow', type: 'tab', label: 'Test', ...more })

// Returns an account node for a service, or for a relay before it.
export const account = (service, more = {}) =>
  ({ id: 'account', type: 'formsvc-account', name: '', baseUrl: service.url, credentials: { apiKey: service.key }, ...more })

export const trigger = (server, more = {}) => ({
  id: 'trigger', z: 'flow', type: 'formsvc-in', account: 'account', events: ['response.created'], campaign: '',
  publicUrl: server.publicUrl, path: '', wires: [['record']], ...more,
})

// Returns nodes of an action between HTTP nodes: POST /<operation> runs it, and is answered with the message that comes out,
// or with 500 and the message that a Catch node got.
export function action(operation, more = {}, before = '') {
  const id = more.id ?? operation
  const common = { z: 'flow' }
  return [
    { ...common, id: `${id}-in`, type: 'http in', url: `/${id}`, method: 'post', wires: [[`${id}-before`]] },
    { ...common, id: `${id}-before`, type: 'function', outputs: 1, func: `${before}; return msg`, wires: [[id]] },
    { ...common, type: 'formsvc', account: 'account', operation, wires: [[`${id}-out`]], ...more, id },
    { ...common, id: `${id}-catch`, type: 'catch', scope: [id], uncaught: false, wires: [[`${id}-failed`]] },
    {
      ...common, id: `${id}-failed`, type: 'function', outputs: 1, wires: [[`${id}-out`]],
      func: 'msg.statusCode = 500; msg.payload = {error: msg.error, problem: msg.problem}; return msg',
    },
    { ...common, id: `${id}-out`, type: 'http response', wires: [] },
  ]
}

// Starts a relay to a service. It keeps what passes; relay.meddle(request, forward) may answer in place of forward().
export async function startRelay(target) {
  const relay = { requests: [], meddle: null }
  const server = http.createServer((req, res) => {
    const chunks = []
    req.on('data', chunk => chunks.push(chunk)).on('end', async () => {
      const request = { method: req.method, path: req.url, headers: req.headers, body: Buffer.concat(chunks) }
      relay.requests.push(request)
      const forward = () => pass(target(), request)
      try {
        const answer = await (relay.meddle ? relay.meddle(request, forward) : forward())
        if (!answer) return req.socket.destroy()
        res.writeHead(answer.status, answer.headers)
        res.end(answer.body)
      } catch {
        req.socket.destroy()
      }
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  relay.url = `http://127.0.0.1:${server.address().port}`
  relay.stop = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  return relay
}

// Makes a request with exactly these headers, which fetch would change.
export function pass(base, { method, path, headers, body }) {
  return new Promise((resolve, reject) => {
    const { host, connection, ...rest } = headers
    const client = base.startsWith('https:') ? https : http
    const request = client.request(base + path, { method, headers: rest, agent: false, rejectUnauthorized: false }, answer => {
      const chunks = []
      answer.on('data', chunk => chunks.push(chunk)).on('error', reject)
        .on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) }))
    })
    request.on('error', reject)
    request.end(body)
  })
}
