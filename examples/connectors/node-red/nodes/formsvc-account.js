'use strict'
const { Client, ServiceError } = require('../lib/client')

module.exports = function (RED) {
  function Account(config) {
    RED.nodes.createNode(this, config)
    this.baseUrl = config.baseUrl
    // Fails with what is missing; the nodes that use the account show it.
    this.client = () => new Client({ baseUrl: this.baseUrl, apiKey: this.credentials?.apiKey })
  }
  RED.nodes.registerType('formsvc-account', Account, { credentials: { apiKey: { type: 'password' } } })

  // Returns a client for what the editor asks with: the key that was just typed, or that of the deployed node. The latter goes
  // to no other address than the deployed one, or the editor would be a way to read it.
  function clientFor({ id, baseUrl, apiKey }) {
    if (apiKey) return new Client({ baseUrl, apiKey })
    const node = id ? RED.nodes.getNode(id) : undefined
    if (!node || node.type !== 'formsvc-account') throw new ServiceError('Type the API key, or deploy the account first.')
    const same = url => String(url ?? '').trim().replace(/\/+$/, '')
    if (!String(baseUrl).includes('${') && same(baseUrl) !== same(node.baseUrl)) {
      throw new ServiceError('The base URL has changed. Type the API key again, or deploy first.')
    }
    return node.client()
  }

  // Who may change accounts may use them from the editor.
  const allowed = RED.auth.needsPermission('formsvc-account.write')

  function serve(path, work) {
    RED.httpAdmin.post(path, allowed, async (req, res) => {
      try {
        res.json(await work(clientFor(req.body ?? {}), req.body ?? {}))
      } catch (error) {
        res.status(502).json({ message: error.message })
      }
    })
  }

  const get = async (client, path, query) => (await client.send({ method: 'GET', path, query }, { attempts: 1 })).body

  serve('/formsvc/test', async client => {
    const { account, key, permissions } = await get(client, '/v1/me')
    return { account: account.name, key: key?.name, permissions }
  })

  serve('/formsvc/campaigns', async (client, { search }) => {
    const { items, total } = await get(client, '/v1/campaigns', { search, limit: 50 })
    return { items: items.map(({ uuid, title }) => ({ uuid, title })), total }
  })

  serve('/formsvc/campaign', async (client, { campaign }) => {
    const { title, modules } = await get(client, `/v1/campaigns/${encodeURIComponent(campaign)}`)
    return { title, modules: modules.filter(({ type }) => type !== 'file' && type !== 'section') } // files are uploaded by another operation
  })
}
