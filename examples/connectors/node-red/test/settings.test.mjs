// The trigger receives, or says why not, whatever the settings of Node-RED and whatever is wrong.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually, startAsItIs, startService } from '../../testing/service.mjs'
import { account, folder, startAsDocumented, startNodeRed, startRelay, tab, trigger } from './nodered.mjs'

const BARE = "module.exports = { flowFile: 'flows.json', credentialSecret: false, telemetry: { enabled: false },"
// What Node-RED is made of, for settings to load.
const MODULES = JSON.stringify(join(folder, 'node_modules', '/'))
const CASES = {
  'the settings that Node-RED generates': { start: startAsDocumented },
  'the editor and the nodes at paths of their own': {
    adminRoot: '/admin', nodeRoot: '/nodes', settings: `${BARE} httpAdminRoot: '/admin', httpNodeRoot: 'nodes' }`,
  },
  'the nodes below the editor': { nodeRoot: '/a/b', settings: `${BARE} httpNodeRoot: '/a/b/' }` },
  'the editor with a password': {
    settings: `${BARE} adminAuth: { type: 'credentials', users: [], default: { permissions: '*' } } }`,
  },
  'parsers of bodies before the nodes': {
    settings: `const express = require(${MODULES} + 'express'); const slow = (req, res, next) => setTimeout(next, 50)
      ${BARE} httpNodeMiddleware: [slow, express.json(), express.raw({ type: '*/*' }), express.text({ type: '*/*' })] }`,
  },
  'something slow before the editor': { settings: `${BARE} httpAdminMiddleware: (req, res, next) => setTimeout(next, 50) }` },
}

describe('settings', { concurrency: false }, () => {
  let service, campaign

  before(async () => {
    service = await startService()
    campaign = await service.campaign()
  })

  after(() => service?.stop())

  // The flow of these tests: what comes is commented on.
  const flow = (nodeRed, more, wanted = account(service)) => [tab(), wanted, trigger(nodeRed, { wires: [['comment', 'all']], ...more }), {
    id: 'comment', z: 'flow', type: 'formsvc', account: 'account', operation: 'addComment', comment: 'seen', commentType: 'str',
    campaign: 'event.data.campaign.uuid', campaignType: 'msg', response: 'event.data.response.uuid', responseType: 'msg', wires: [['record']],
  }, ...nodeRed.record('record'), ...nodeRed.record('all', 'all'), ...nodeRed.watch()]

  // Makes a response and waits until its event has gone all the way through the flow.
  async function goesThrough(nodeRed) {
    const { uuid } = await service.response(campaign)
    await eventually('the comment', async () =>
      (await service.get(`/v1/campaigns/${campaign.uuid}/responses/${uuid}/comments`)).total === 1)
    const about = await eventually('the message', async () => {
      const got = (await nodeRed.messages()).filter(({ event }) => event.data.response.uuid === uuid)
      return got.length && got
    })
    assert.equal(about.length, 1)
  }

  for (const [name, { start = startNodeRed, ...how }] of Object.entries(CASES)) {
    test(name, async t => {
      const nodeRed = await start(how)
      t.after(() => nodeRed.stop())
      await nodeRed.deploy(flow(nodeRed))
      await nodeRed.shows(/^green: receiving$/)
      await goesThrough(nodeRed)
      const all = await eventually('what the trigger has sent', async () => {
        const sent = await nodeRed.messages('all')
        return sent.length && sent
      })
      assert.equal(all.length, 1, 'the test event of the node stays with it')
      // Two more nodes, a change of one, and none at all: each time what is there receives.
      const two = [{ ...trigger(nodeRed), id: 'second', wires: [[]] }, ...nodeRed.watch('second')]
      await nodeRed.deploy([...flow(nodeRed, {}, account(service, { credentials: undefined })), ...two], 'nodes')
      await nodeRed.shows(/^green/, 'second')
      await nodeRed.deploy(flow(nodeRed, { path: 'another/path' }, account(service, { credentials: undefined })), 'nodes')
      await eventually('the other path', async () => (await service.webhooks()).every(({ url }) => url === `${nodeRed.publicUrl}/another/path`))
      await nodeRed.shows(/^green/)
      await goesThrough(nodeRed)
      await nodeRed.deploy([])
      await eventually('no webhook is left', async () => (await service.webhooks()).length === 0)
    })
  }

  test('no editor at all', async t => {
    const nodeRed = await startNodeRed({ settings: `${BARE} httpAdminRoot: false }` })
    t.after(() => nodeRed.stop())
    const nodes = flow(nodeRed).map(node => (node.z ? { x: 0, y: 0, ...node } : node))
    await writeFile(join(nodeRed.userDir, 'flows.json'), JSON.stringify(nodes.map(({ credentials, ...node }) => node)))
    await writeFile(join(nodeRed.userDir, 'flows_cred.json'), JSON.stringify({ account: { apiKey: service.key } }))
    await nodeRed.end()
    await nodeRed.start()
    await nodeRed.shows(/^green/)
    await goesThrough(nodeRed)
    await service.request('DELETE', `/v1/webhooks/${(await service.webhooks())[0].uuid}`)
  })

  test('https', async t => {
    const nodeRed = await startNodeRed({
      protocol: 'https', settings: `${BARE} https: () => ['key', 'cert'].reduce((all, name) =>
        ({ ...all, [name]: require('fs').readFileSync(__dirname + '/' + name + '.pem') }), {}) }`, prepare: certificate,
    })
    t.after(() => nodeRed.stop())
    // The service trusts no certificate that we can make, so something before Node-RED has the public address.
    const front = await startRelay(() => nodeRed.publicUrl)
    t.after(() => front.stop())
    nodeRed.adminUrl = front.url
    await nodeRed.deploy(flow(nodeRed, { publicUrl: front.url }))
    await nodeRed.shows(/^green/)
    await goesThrough(nodeRed)
    await nodeRed.deploy([])
  })
})

function certificate(dir) {
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-subj', '/CN=localhost',
    '-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')], { stdio: 'ignore' })
}

describe('what is wrong shows at the node', { concurrency: false }, () => {
  let service, nodeRed

  before(async () => {
    [service, nodeRed] = await Promise.all([startService(), startNodeRed()])
  })

  after(() => Promise.all([service?.stop(), nodeRed?.stop()]))

  const deploy = async (more, wanted = account(service)) => {
    await nodeRed.deploy([tab(), wanted, trigger(nodeRed, { wires: [[]], ...more }), ...nodeRed.watch()])
  }

  // Starts a server that answers everything in one way.
  async function startAnswering(t, status, text) {
    const server = http.createServer((req, res) => res.writeHead(status).end(text))
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    return `http://127.0.0.1:${server.address().port}`
  }

  test('a public URL that nobody serves', async t => {
    const url = await startAnswering(t, 200, '')
    await deploy({ publicUrl: url.replace(/\d+$/, '1') })
    await nodeRed.shows(/^red: The service can't reach the public URL \(connect\): http:\/\/127\.0\.0\.1:1\//)
  })

  test('a public URL that leads to something else', async t => {
    await deploy({ publicUrl: await startAnswering(t, 200, 'Welcome') })
    await nodeRed.shows(/^red: The public URL leads elsewhere: a test event was answered with 200/)
    await deploy({ publicUrl: await startAnswering(t, 404, 'nothing here') })
    await nodeRed.shows(/^red: The public URL answers the service with 404: nothing here/)
  })

  test('something before Node-RED that changes what is signed', async t => {
    const front = await startRelay(() => nodeRed.publicUrl)
    t.after(() => front.stop())
    front.meddle = async (request, forward) => {
      request.headers['webhook-id'] = 'another'
      return forward()
    }
    await deploy({ publicUrl: front.url })
    await nodeRed.shows(/^red: The public URL answers the service with 401: webhook-signature is wrong/)
    // It is well again without anybody's help once an event arrives.
    front.meddle = null
    await service.response(await service.campaign())
    await nodeRed.shows(/^green: receiving$/)
  })

  test('another secret than that of the node: it subscribes again', async () => {
    await deploy({})
    await nodeRed.shows(/^green/)
    const [{ uuid, url, events }] = await service.webhooks()
    await service.request('PUT', `/v1/webhooks/${uuid}`, { body: { url, events, secret: 'whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==' } })
    const from = (await nodeRed.statuses()).length
    await service.response(await service.campaign())
    await eventually('it subscribes again', async () => (await nodeRed.statuses()).slice(from).includes('yellow: subscribing'))
    await nodeRed.shows(/^green: receiving$/)
  })

  test('a key that may not subscribe, and a wrong one', async () => {
    await deploy({}, account(service, { credentials: { apiKey: await service.newKey('webhooks:read') } }))
    await nodeRed.shows(/^red: Forbidden: The key lacks the permission webhooks:write\.$/)
    await deploy({}, account(service, { credentials: { apiKey: 'wrong' } }))
    await nodeRed.shows(/^red: Unauthorized: /)
  })

  test('an address that is not public', async t => {
    const strict = await startAsItIs()
    t.after(() => strict.stop())
    await deploy({}, account(strict))
    await nodeRed.shows(/^red: The service sends to public addresses only.* "formsvc poll".* --webhook-allow$/)
  })

  test('a service that is not there, and a base URL that is not the service\'s', async t => {
    await deploy({}, account({ url: 'http://127.0.0.1:1', key: 'x' }))
    await nodeRed.shows(/^red: http:\/\/127\.0\.0\.1:1 cannot be reached: /)
    await deploy({}, account({ url: await startAnswering(t, 404, 'no'), key: 'x' }))
    await nodeRed.shows(/^red: .* answered 404\. Check the base URL of the account\.$/)
  })

  test('a password before the nodes', async t => {
    const guarded = await startNodeRed({ settings: `${BARE} httpNodeAuth: { user: 'u', pass: require(${MODULES} + 'bcryptjs').hashSync('p', 4) } }` })
    t.after(() => guarded.stop())
    await guarded.deploy([tab(), account(service), trigger(guarded, { wires: [[]] }), ...guarded.watch()])
    await guarded.shows(/^red: The public URL answers the service with 401: Unauthorized/)
    // As the documentation says.
    const webhook = (await service.webhooks()).find(({ url }) => url.startsWith(guarded.publicUrl))
    const authorization = `Basic ${Buffer.from('u:p').toString('base64')}`
    await service.request('PUT', `/v1/webhooks/${webhook.uuid}`, { body: { ...webhook, headers: { Authorization: authorization } } })
    await guarded.deploy([tab(), account(service, { credentials: undefined }), trigger(guarded, { wires: [[]] }), ...guarded.watch()])
    await guarded.shows(/^green/)
  })
})

// A program that embeds Node-RED, as its documentation has it, with a parser of bodies before everything.
const EMBEDDED = `
const http = require('http'), express = require('express'), RED = require('node-red')
const [port, userDir, known] = process.argv.slice(1)
const app = express(), server = http.createServer(app)
app.use(express.json())
const settings = { httpAdminRoot: '/red', httpNodeRoot: '/api', userDir, credentialSecret: false }
RED.init(known === 'known' ? server : http.createServer(), settings)
app.use(settings.httpAdminRoot, RED.httpAdmin)
app.use(settings.httpNodeRoot, RED.httpNode)
server.listen(port, '127.0.0.1')
RED.start().then(() => setTimeout(() => console.log('Server now running at'), 100))
if (known === 'known') setInterval(() => {
  require('fs').writeFileSync(userDir + '/listeners', String(server.listenerCount('request')))
}, 50)
`

describe('embedded in an Express application that parses bodies', { concurrency: false }, () => {
  let service
  before(async () => { service = await startService() })
  after(() => service?.stop())

  const start = async (t, known) => {
    const nodeRed = await startNodeRed({ adminRoot: '/red', nodeRoot: '/api', embedded: { text: EMBEDDED, args: [known] } })
    t.after(() => nodeRed.stop())
    return nodeRed
  }
  const flow = (nodeRed, ...ids) => [tab(), account(service), ...ids.flatMap(id =>
    [{ ...trigger(nodeRed), id, wires: [['record']] }, ...nodeRed.watch(id)]), ...nodeRed.record('record')]

  test('with its server given to Node-RED: it receives, and leaves no listener behind', async t => {
    const nodeRed = await start(t, 'known')
    const listeners = async () => Number(await readFile(join(nodeRed.userDir, 'listeners'), 'utf8'))
    const without = await listeners()
    for (let i = 0; i < 12; i++) await nodeRed.deploy(flow(nodeRed, 'trigger', 'second'))
    await nodeRed.shows(/^green/)
    await nodeRed.shows(/^green/, 'second')
    await service.response(await service.campaign())
    await eventually('both have it', async () => (await nodeRed.messages()).length === 2)
    await eventually('one listener more', async () => await listeners() === without + 1)
    await nodeRed.deploy([])
    await eventually('no listener more', async () => await listeners() === without)
  })

  test('with another server, which never listens: it says so', async t => {
    const nodeRed = await start(t, 'unknown')
    await nodeRed.deploy(flow(nodeRed, 'trigger'))
    await nodeRed.shows(/^red: The public URL answers the service with 400: The program that embeds Node-RED reads the bodies/)
  })
})
