import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { databases } from '../../testing/service.mjs'
import { App, core, failure, listen, message, start } from './support.mjs'

const NAME = 'reçu n° 1.pdf'

// A few megabytes of anything, with zero bytes.
function content() {
  return Buffer.concat([Buffer.alloc(1000), randomBytes(3_000_001), Buffer.alloc(1)])
}

const sha256 = bytes => createHash('sha256').update(bytes).digest('hex')

for (const database of databases()) {
  test(`files on ${database.name}`, async t => {
    const { service, run } = await start(t, database)
    const campaign = await service.campaign()
    const response = await service.response(campaign)
    const files = `/v1/campaigns/${campaign.uuid}/responses/${response.uuid}/files`
    const upload = more => run('creates.upload_file.operation.perform', {
      inputData: { campaign: campaign.uuid, response: response.uuid, ...more } })
    const kept = async () => (await service.get(files)).items

    await t.test('a file goes up byte for byte, with its name and type, and without the key', async t => {
      const bytes = content()
      const seen = []
      const url = await listen(t, (request, body, answer) => {
        seen.push(request.headers)
        answer.writeHead(200, {
          'content-type': 'application/pdf',
          'content-length': bytes.length,
          'content-disposition': `attachment; filename="recu.pdf"; filename*=UTF-8''${encodeURIComponent(NAME)}`,
        }).end(bytes)
      })
      const made = await upload({ file: `${url}/some/where?token=1`, module: 'receipt' })
      assert.deepEqual([made.name, made.contentType, made.size, made.sha256, made.module],
        [NAME, 'application/pdf', bytes.length, sha256(bytes), 'receipt'])
      const { body, headers } = await service.request('GET', `/v1/files/${made.id}`)
      assert.ok(bytes.equals(body))
      assert.match(headers.get('content-disposition'), /filename\*=UTF-8''re%C3%A7u%20n%C2%B0%201\.pdf/)
      assert.equal(seen.length, 1)
      assert.equal(seen[0].authorization, undefined)
      assert.equal(seen[0]['accept-encoding'], 'identity')
    })

    await t.test('names come from the user, the header or the address', async t => {
      const url = await listen(t, (request, body, answer) => {
        const disposition = new URL(request.url, 'http://x').searchParams.get('d')
        answer.writeHead(200, disposition ? { 'content-disposition': Buffer.from(disposition).toString('latin1') } : {}).end('x')
      })
      const name = async (path, more) => (await upload({ file: url + path, ...more })).name
      const header = text => `/a.txt?d=${encodeURIComponent(text)}`
      assert.equal(await name(`/x/${encodeURIComponent(NAME)}?y=/z`), NAME)
      assert.equal(await name('/'), 'file')
      assert.equal(await name(header('attachment; filename="a \\"b\\".pdf"'), {}), 'a "b".pdf')
      assert.equal(await name(header(`attachment; filename="${NAME}"`)), NAME)
      assert.equal(await name(header('attachment; filename=plain.pdf')), 'plain.pdf')
      assert.equal(await name(header('attachment; filename="../../up.pdf"')), 'up.pdf')
      assert.equal(await name(header("attachment; filename=b.pdf; filename*=UTF-8''%ff")), 'b.pdf')
      assert.equal(await name(header('inline')), 'a.txt')
      assert.equal(await name('/a.txt', { name: " it's (mine)*.pdf " }), "it's (mine)*.pdf")
    })

    await t.test('a file of unknown size, an empty one, and one that is a form', async t => {
      const bytes = content()
      const url = await listen(t, (request, body, answer) => {
        if (request.url === '/empty') return answer.writeHead(200, { 'content-length': 0 }).end()
        if (request.url === '/form') return answer.writeHead(200, { 'content-type': 'multipart/form-data; boundary=x' }).end('--x--')
        answer.writeHead(200)
        answer.write(bytes.subarray(0, 70_000))
        return answer.end(bytes.subarray(70_000))
      })
      assert.equal((await upload({ file: `${url}/chunked` })).sha256, sha256(bytes))
      assert.equal((await upload({ file: `${url}/empty` })).size, 0)
      const form = await upload({ file: `${url}/form` })
      assert.deepEqual([form.size, form.contentType], [5, 'application/octet-stream'])
    })

    await t.test('an upload that is replayed is done once', async t => {
      const url = await listen(t, (request, body, answer) => answer.end('x'))
      const before = (await kept()).length
      const made = await upload({ file: url, onceId: 'event' })
      assert.deepEqual(await upload({ file: url, onceId: 'event' }), made)
      assert.equal((await kept()).length, before + 1)
    })

    await t.test('a file that does not arrive whole is not kept', async t => {
      const url = await listen(t, (request, body, answer) => {
        if (request.url.startsWith('/missing')) return answer.writeHead(404).end('no')
        answer.writeHead(200, request.url === '/cut' ? { 'content-length': 1000 } : {})
        answer.write(Buffer.alloc(100))
        return setImmediate(() => request.socket.destroy())
      })
      const before = (await kept()).length
      assert.match(message(await failure(upload({ file: `${url}/cut` }))), /^The file broke off while it was fetched/)
      assert.match(message(await failure(upload({ file: `${url}/cut-chunked` }))), /^The file broke off while it was fetched/)
      const missing = message(await failure(upload({ file: `${url}/missing?token=secret` })))
      assert.match(missing, /^The file could not be fetched: .*\/missing answered 404\.$/)
      assert.match(message(await failure(upload({ file: 'just text' }))), /must be a file of an earlier step or a web address/)
      assert.match(message(await failure(upload({ file: 'file:///etc/passwd' }))), /must be a file of an earlier step/)
      assert.equal((await kept()).length, before)
    })

    await t.test('a file of an event is downloaded byte for byte, into what stands in for Zapier\'s storage', async t => {
      const bytes = content()
      const { uuid } = (await service.request('POST', files, {
        body: bytes,
        headers: { 'content-type': 'application/pdf', 'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(NAME)}` },
      })).body
      const stored = []
      const url = await listen(t, async (request, body, answer) => {
        if (request.url === '/store') {
          stored.push(await new Response(body, { headers: { 'content-type': request.headers['content-type'] } }).formData())
          return answer.writeHead(204).end()
        }
        const { id, method } = JSON.parse(body)
        assert.equal(method, 'get_presigned_upload_post_data')
        const result = { url: `${url}/store`, fields: { key: 'kept/here' } }
        return answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id, result }))
      })
      const download = (fileUuid, apiKey = service.key) => core.createAppHandler(App)({
        command: 'execute',
        method: 'hydrators.downloadFile',
        bundle: { authData: { baseUrl: service.url, apiKey }, inputData: { fileUuid }, meta: {} },
        rpc_base: url,
        token: 'zapier',
      })
      const { results } = await download(uuid)
      assert.equal(results, `${url}/kept/here`)
      const [form] = stored
      assert.ok(bytes.equals(Buffer.from(await form.get('file').arrayBuffer())))
      assert.equal(form.get('Content-Type'), 'application/pdf')
      assert.equal(form.get('file').name, NAME)
      assert.equal(form.get('Content-Disposition'), `attachment; filename="${NAME}"`)

      const gone = await failure(download('019aa5f0-6c00-7000-8000-000000000003'))
      assert.match(message(gone), /^Not Found: Nothing was found at this address/)
      const key = await service.newKey('responses:read')
      assert.match(message(await failure(download(uuid, key))), /lacks the permission files:read/)
      assert.equal(stored.length, 1)
    })
  })
}
