// The parts of the package that need neither Node-RED nor the service.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'

const require = createRequire(import.meta.url)
const { checkBaseUrl } = require('../lib/client.js')
const { IdempotencyKeys } = require('../lib/idempotency.js')
const { disposition, fileName, operations } = require('../lib/operations.js')
const { cleanPath } = require('../lib/receiver.js')
const { distrust } = require('../lib/signature.js')

describe('signature', () => {
  const key = Buffer.from('0123456789abcdef0123456789abcdef')
  const secret = `whsec_${key.toString('base64')}`
  const body = Buffer.from('{"id":"1","ü":"\\u0000"}')
  const now = 1_800_000_000
  const sign = (id, at, bytes = body, by = key) =>
    'v1,' + createHmac('sha256', by).update(Buffer.concat([Buffer.from(`${id}.${at}.`), bytes])).digest('base64')
  const headers = (more = {}) => ({
    'webhook-id': 'e1', 'webhook-timestamp': String(now), 'webhook-signature': sign('e1', now), ...more,
  })
  const cases = {
    'as the service sends it': [headers(), ''],
    'five minutes old': [headers({ 'webhook-timestamp': String(now - 300), 'webhook-signature': sign('e1', now - 300) }), ''],
    'one of two signatures': [headers({ 'webhook-signature': `${sign('e1', now, body, 'other')} ${sign('e1', now)}` }), ''],
    'too old': [headers({ 'webhook-timestamp': String(now - 301), 'webhook-signature': sign('e1', now - 301) }), /five minutes/],
    'from the future': [headers({ 'webhook-timestamp': String(now + 301), 'webhook-signature': sign('e1', now + 301) }), /five minutes/],
    'another secret': [headers({ 'webhook-signature': sign('e1', now, body, 'other') }), /wrong/],
    'another body': [headers({ 'webhook-signature': sign('e1', now, Buffer.from('{}')) }), /wrong/],
    'another id': [headers({ 'webhook-id': 'e2' }), /wrong/],
    'another time': [headers({ 'webhook-timestamp': String(now + 1) }), /wrong/],
    'an id with a dot': [headers({ 'webhook-id': 'e1.1', 'webhook-signature': sign('e1.1', now) }), /dot/],
    'a time with a zero before it': [headers({ 'webhook-timestamp': `0${now}`, 'webhook-signature': sign('e1', `0${now}`) }), /number/],
    'a time that is none': [headers({ 'webhook-timestamp': 'NaN', 'webhook-signature': sign('e1', 'NaN') }), /number/],
    'another version': [headers({ 'webhook-signature': sign('e1', now).replace('v1', 'v2') }), /wrong/],
    'a piece of a signature': [headers({ 'webhook-signature': sign('e1', now).slice(0, 20) }), /wrong/],
    'no signature': [headers({ 'webhook-signature': undefined }), /missing/],
    'an empty signature': [headers({ 'webhook-signature': '' }), /missing/],
    'no time': [headers({ 'webhook-timestamp': undefined }), /missing/],
    'no id': [headers({ 'webhook-id': undefined }), /missing/],
  }
  for (const [name, [given, why]] of Object.entries(cases)) {
    test(name, () => {
      const got = distrust(given, body, secret, now)
      if (why) assert.match(got, why)
      else assert.equal(got, '')
    })
  }
  test('without a secret nothing is trusted', () => {
    const empty = headers({ 'webhook-signature': sign('e1', now, body, '') })
    assert.match(distrust(empty, body, '', now), /not subscribed/)
  })
})

describe('idempotency keys', () => {
  const request = { method: 'POST', path: '/v1/x', json: { body: 'same' } }

  test('what failed with an unknown outcome keeps its key', () => {
    const keys = new IdempotencyKeys('node')
    const first = keys.take('m', request)
    const second = keys.take('m', request)
    assert.notEqual(first.key, second.key, 'two equal messages are two')
    first.settle({ unsettled: true })
    second.settle()
    assert.equal(keys.take('m', request).key, first.key)
  })

  test('what was done or refused gets a new one', () => {
    const keys = new IdempotencyKeys('node')
    const done = keys.take('m', request)
    done.settle()
    const refused = keys.take('m', request)
    refused.settle({ unsettled: false })
    const third = keys.take('m', request)
    assert.equal(new Set([done.key, refused.key, third.key]).size, 3)
  })

  test('they are the same in the next life of the node', () => {
    const life = () => [1, 2].map(() => keys.take('m', request).key)
    let keys = new IdempotencyKeys('node')
    const before = life()
    keys = new IdempotencyKeys('node')
    assert.deepEqual(life(), before)
    for (const key of before) assert.match(key, /^[!-~]{1,255}$/)
  })

  test('another node, message, content or file is another request', () => {
    const all = [
      new IdempotencyKeys('node').take('m', request),
      new IdempotencyKeys('other').take('m', request),
      new IdempotencyKeys('node').take('n', request),
      new IdempotencyKeys('node').take('m', { ...request, json: { body: 'other' } }),
      new IdempotencyKeys('node').take('m', { ...request, bytes: Buffer.from([0]) }),
      new IdempotencyKeys('node').take('m', { ...request, bytes: Buffer.from([0, 0]) }),
    ]
    assert.equal(new Set(all.map(({ key }) => key)).size, all.length)
  })

  test('memory is bounded', () => {
    const keys = new IdempotencyKeys('node', 10)
    const first = keys.take('0', request)
    for (let i = 1; i <= 10; i++) keys.take(String(i), request)
    assert.equal(keys.take('0', request).key, first.key, 'forgotten, so it begins again')
  })
})

test('file names survive headers', () => {
  for (const name of ['reçu n° 1.pdf', "it's (a) *test*; x=\"y\".txt", '100%.txt', '日本語.txt', 'a\nb', '\ud800half']) {
    const header = disposition(name)
    assert.match(header, /^[ -~]+$/)
    assert.equal(fileName(header), Buffer.from(name).toString())
  }
  assert.equal(fileName('attachment; filename="a \\"b\\".txt"'), 'a "b".txt')
  assert.equal(fileName('attachment; filename=plain.txt'), 'plain.txt')
  assert.equal(fileName(null), '')
})

test('answers', () => {
  const ask = answers => operations.createResponse.request({ campaign: uuid, email: 'a@example.com', answers }).json.responses
  const uuid = '01a1fd3a-135b-7000-8000-000000000007'
  const given = JSON.parse('{"text":"a","list":["b",1,true],"own":{"value":["c"]},"none":null,"empty":[],"zero":0,"__proto__":"p"}')
  assert.equal(JSON.stringify(ask(given)), JSON.stringify({
    text: { value: ['a'] }, list: { value: ['b', '1', 'true'] }, own: { value: ['c'] }, empty: { value: [] }, zero: { value: ['0'] },
  }).replace(/}$/, ',"__proto__":{"value":["p"]}}'))
  assert.deepEqual({ ...ask({ a: [undefined, null, 'x'] }) }, { a: { value: ['x'] } })
  for (const comment of [undefined, null, ' ', 'undefined', 'null', '[object Object]', {}]) {
    assert.throws(() => operations.addComment.request({ campaign: uuid, response: uuid, comment }), /Comment (is missing|must be text)/)
  }
  assert.throws(() => ask({ bad: { a: 1 } }), /"bad" must be text, not an object/)
  assert.throws(() => ask({ bad: [NaN] }), /"bad" must be text, not NaN/)
  assert.throws(() => ask(['a']), /object with the names of modules, not a list/)
})

test('what is no UUID gets into no path', () => {
  for (const campaign of ['', undefined, '../webhooks', 'x', {}]) {
    assert.throws(() => operations.getCampaign.request({ campaign }), /Campaign/)
  }
})

test('base URLs and paths', () => {
  assert.equal(checkBaseUrl(' https://forms.example.com/ '), 'https://forms.example.com')
  assert.equal(checkBaseUrl('https://example.com/forms/v1'), 'https://example.com/forms')
  for (const bad of ['', 'forms.example.com', 'ftp://example.com', 'https://user@example.com', 'https://example.com/?a']) {
    assert.throws(() => checkBaseUrl(bad), /base URL/)
  }
  assert.equal(cleanPath('a/b-c.1/'), '/a/b-c.1')
  for (const bad of ['', '/', 'a//b', 'a b', 'a:b', 'a*']) assert.equal(cleanPath(bad), undefined)
})
