// Runs the action node in workflows of their own: a webhook takes items, which the action node gets, and answers with what
// it puts out.
import { randomUUID } from 'node:crypto'

import { eventually } from '../../testing/service.mjs'
import { actionType } from './n8n.mjs'

// A campaign as it is chosen by its UUID.
export function byId(value) {
  return { __rl: true, mode: 'id', value }
}

export class Actions {
  constructor(n8n, credentials) {
    this.n8n = n8n
    this.credentials = credentials
  }

  // Makes a workflow around the action node and returns a function that runs it. The items are the members of an array in
  // the request; parameters take from them with expressions.
  async prepare(parameters, node = {}) {
    return await this.#prepare([
      { type: 'n8n-nodes-base.splitOut', parameters: { fieldToSplitOut: 'body', options: {} } },
      { type: actionType, credentials: this.credentials, parameters, ...node },
    ], { responseMode: 'lastNode', responseData: 'allEntries' }, items => ({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(items),
    }))
  }

  // The same for a file, which is the body of the request.
  async prepareUpload(parameters, node = {}) {
    return await this.#prepare([
      {
        type: 'n8n-nodes-base.code',
        typeVersion: 2,
        // The webhook gives the file no name of its own.
        parameters: {
          jsCode: 'for (const item of $input.all()) item.binary.data.fileName = decodeURIComponent(item.json.query.name);\nreturn $input.all();',
        },
      },
      { type: actionType, credentials: this.credentials, parameters, ...node },
    ], { responseMode: 'lastNode', responseData: 'allEntries', options: { rawBody: true } }, file => ({
      headers: { 'content-type': file.type },
      body: file.bytes,
      query: `?name=${encodeURIComponent(encodeURIComponent(file.name))}`,
    }))
  }

  // The same for a file that comes out: the answer of the webhook.
  async prepareDownload(parameters, node = {}) {
    return await this.#prepare([
      { type: actionType, credentials: this.credentials, parameters, ...node },
    ], { responseMode: 'lastNode', responseData: 'firstEntryBinary', responseBinaryPropertyName: 'data' }, () => ({}))
  }

  // Downloads a file and uploads it again, in one workflow.
  async prepareCopy(download, upload) {
    return await this.#prepare(
      [download, upload].map(parameters => ({ type: actionType, credentials: this.credentials, parameters })),
      { responseMode: 'lastNode', responseData: 'allEntries' }, () => ({}))
  }

  async #prepare(nodes, webhook, asRequest) {
    const { n8n } = this
    const path = randomUUID()
    const id = await n8n.workflow({
      type: 'n8n-nodes-base.webhook', typeVersion: 2, webhookId: randomUUID(),
      parameters: { httpMethod: 'POST', path, ...webhook },
    }, ...nodes)
    await n8n.activate(id)
    let runs = 0
    return async input => {
      const { query = '', ...init } = asRequest(input)
      // n8n says that a workflow is active a little before its webhook is there.
      const answer = await eventually('the webhook is there', async () => {
        const given = await fetch(`${n8n.url}/webhook/${path}${query}`, { method: 'POST', ...init })
        return given.status === 404 ? undefined : given
      })
      const bytes = Buffer.from(await answer.arrayBuffer())
      runs++
      const execution = await eventually('the execution is recorded', async () => (await n8n.executions(id))[runs - 1])
      return {
        status: answer.status,
        headers: answer.headers,
        bytes,
        items: /\bjson\b/.test(answer.headers.get('content-type') ?? '') ? JSON.parse(bytes) : undefined,
        error: execution?.data.resultData.error,
        execution,
      }
    }
  }
}
