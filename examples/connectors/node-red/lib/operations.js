'use strict'
// What the action node can do: for each operation the fields it needs, the request it makes of their values, and the message
// that its answer makes.

const ONE_PAGE = 1000

// A value that cannot be sent. The label is what the editor calls the field.
class FieldError extends Error {
  toString() {
    return this.message
  }
}

const isMissing = value => value === undefined || value === null || value === ''

// Returns a value as text, or fails with what is wrong with it.
function text(value, label) {
  if (isMissing(value)) return ''
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || Number.isFinite(value)) return String(value)
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString()
  throw new FieldError(`${label} must be text, not ${describe(value)}.`)
}

function describe(value) {
  if (Buffer.isBuffer(value)) return 'a Buffer'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : String(value)
}

function needed(value, label) {
  const got = text(value, label)
  // The others are what templates and functions make of nothing.
  if (/^(undefined|null|\[object Object\])?$/.test(got.trim())) throw new FieldError(`${label} is missing.`)
  return got
}

// Returns a UUID for a path. What is none could lead elsewhere.
function uuid(value, label) {
  const got = needed(value, label).trim().toLowerCase()
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(got)) throw new FieldError(`${label} is not a UUID: ${got}`)
  return got
}

const campaign = values => `/v1/campaigns/${uuid(values.campaign, 'Campaign')}`
const response = values => `${campaign(values)}/responses/${uuid(values.response, 'Response')}`

// Returns answers as the service wants them. They may come so, or with bare values: {name: "text", other: ["a", "b"]}.
function answers(given) {
  if (isMissing(given)) return {}
  if (typeof given !== 'object' || Array.isArray(given) || Buffer.isBuffer(given)) {
    throw new FieldError(`Answers must be an object with the names of modules, not ${describe(given)}.`)
  }
  // Without a prototype any name is a name like another, "__proto__" too.
  const all = Object.create(null)
  for (const [name, answer] of Object.entries(given)) {
    const value = isAnswer(answer) ? answer.value : answer
    if (value === undefined || value === null) continue
    const list = (Array.isArray(value) ? value : [value]).filter(one => one !== undefined && one !== null)
    all[name] = { value: list.map(one => text(one, `The answer "${name}"`)) }
  }
  return all
}

const isAnswer = answer => answer !== null && typeof answer === 'object' && !Array.isArray(answer) &&
  Object.keys(answer).length === 1 && 'value' in answer

function bytes(value) {
  if (Buffer.isBuffer(value)) return value
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (typeof value === 'string') return Buffer.from(value)
  throw new FieldError(`The file must be a Buffer or text, not ${isMissing(value) ? 'nothing' : describe(value)}.`)
}

// Returns a Content-Disposition header for any file name (RFC 8187).
function disposition(name) {
  // encodeURIComponent fails on half a character; it leaves four that are not allowed here.
  const encoded = encodeURIComponent(Buffer.from(name).toString())
    .replace(/['()*]/g, c => '%' + c.charCodeAt(0).toString(16).toUpperCase())
  return `attachment; filename*=UTF-8''${encoded}`
}

// Returns the name of a file in a Content-Disposition header of the service.
function fileName(header) {
  const extended = /filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(header ?? '')
  if (extended) {
    try {
      return decodeURIComponent(extended[1])
    } catch {
      // Then there may be a plain one.
    }
  }
  const plain = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(header ?? '')
  return plain ? plain[2] ?? plain[1].replace(/\\(.)/g, '$1') : ''
}

const list = (path, query = {}) => ({ method: 'GET', path, query, list: true })
const one = path => ({ method: 'GET', path })

const operations = {
  createResponse: {
    fields: ['campaign', 'email', 'firstName', 'lastName', 'answers'],
    request: values => ({
      method: 'POST',
      path: `${campaign(values)}/responses`,
      json: {
        user: {
          email: isMissing(values.email) ? '' : needed(values.email, 'E-mail'), // a campaign may make it optional
          firstName: text(values.firstName, 'First name'),
          lastName: text(values.lastName, 'Last name'),
        },
        responses: answers(values.answers),
      },
    }),
  },
  updateStatus: {
    fields: ['campaign', 'response', 'newStatus'],
    request: values => ({ method: 'PATCH', path: response(values), json: { status: needed(values.newStatus, 'Status') } }),
  },
  addComment: {
    fields: ['campaign', 'response', 'comment'],
    request: values => ({
      method: 'POST', path: `${response(values)}/comments`, json: { body: needed(values.comment, 'Comment') },
    }),
  },
  uploadFile: {
    fields: ['campaign', 'response', 'file', 'fileName', 'contentType', 'module'],
    request: values => ({
      method: 'POST',
      path: `${response(values)}/files`,
      query: { module: text(values.module, 'Module') },
      headers: {
        'content-type': text(values.contentType, 'Content type').trim() || 'application/octet-stream',
        'content-disposition': disposition(needed(values.fileName, 'File name')),
      },
      bytes: bytes(values.file),
    }),
  },
  downloadFile: {
    fields: ['fileUuid'],
    request: values => ({ method: 'GET', path: `/v1/files/${uuid(values.fileUuid, 'File')}`, binary: true }),
    result: ({ headers, body }) => ({
      payload: body,
      filename: fileName(headers.get('content-disposition')),
      contentType: headers.get('content-type') ?? 'application/octet-stream',
    }),
  },
  getCampaign: { fields: ['campaign'], request: values => one(campaign(values)) },
  getResponse: { fields: ['campaign', 'response'], request: values => one(response(values)) },
  listCampaigns: {
    fields: ['search', 'limit'],
    request: values => list('/v1/campaigns', { search: text(values.search, 'Title contains') }),
  },
  listResponses: {
    fields: ['campaign', 'statusFilter', 'emailFilter', 'reference', 'createdAfter', 'limit'],
    request: values => list(`${campaign(values)}/responses`, {
      status: text(values.statusFilter, 'Status'),
      email: text(values.emailFilter, 'E-mail'),
      reference: text(values.reference, 'Reference'),
      createdAfter: text(values.createdAfter, 'Created after'),
    }),
  },
  listFiles: { fields: ['campaign', 'response', 'limit'], request: values => list(`${response(values)}/files`) },
}

// Returns how many items are wanted: 50 unless said otherwise.
function count(value) {
  if (isMissing(value)) return 50
  const number = typeof value === 'string' ? Number(value) : value
  if (!Number.isInteger(number) || number < 1) throw new FieldError(`At most must be a whole number from 1, not ${value}.`)
  return number
}

// Makes the request of an operation and returns the members that the message gets.
async function run(name, values, client, { keyOf, ...options }) {
  const { request: build, result } = operations[name]
  const request = build(values)
  if (request.list) return pages(client, request, count(values.limit), options)
  if (request.method !== 'POST') return outcome(result, await client.send(request, options))
  const { key, settle } = keyOf(request)
  try {
    const answer = await client.send({ ...request, headers: { ...request.headers, 'idempotency-key': key } }, options)
    settle()
    return outcome(result, answer)
  } catch (error) {
    settle(error)
    throw error
  }
}

const outcome = (result, answer) => (result ? result(answer) : { payload: answer.body })

// Follows the cursor until there are as many items as wanted.
async function pages(client, { method, path, query }, wanted, options) {
  const items = []
  let total
  for (let cursor; items.length < wanted;) {
    const limit = Math.min(ONE_PAGE, wanted - items.length)
    const { body } = await client.send({ method, path, query: { ...query, limit, cursor } }, options)
    items.push(...body.items)
    total ??= body.total
    cursor = body.nextCursor
    if (!cursor || !body.items.length) break
  }
  return { payload: items, total }
}

module.exports = { operations, run, FieldError, fileName, disposition }
