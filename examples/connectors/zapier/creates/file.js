'use strict'

const { call } = require('../lib/http')
const { sampleFile } = require('../lib/events')
const { needed, requiredCampaignField, responseField } = require('../lib/fields')
const { attachmentNamed, openFile } = require('../lib/files')
const { idempotencyKey, onceField, repeating } = require('../lib/repeat')
const { withId } = require('../lib/output')

// The file streams from where it is to the service; it is never held as a whole. Every attempt fetches it again.
async function perform(z, bundle) {
  const key = idempotencyKey(bundle, 'upload_file', bundle.inputData.campaign, bundle.inputData.response)
  const { data } = await repeating(() => upload(z, bundle, key))
  return withId(data)
}

async function upload(z, bundle, key) {
  const { file, name, module } = bundle.inputData
  const [campaign, response] = ['campaign', 'response'].map(key => needed(z, bundle, key))
  const ended = new AbortController()
  const source = await openFile(z, file)
  // Without this, a source that breaks off would leave the upload waiting for the rest.
  let broken
  source.stream.once('error', error => {
    broken = error
    ended.abort()
  })
  const headers = {
    'Idempotency-Key': key,
    'Content-Type': source.type,
    'Content-Disposition': attachmentNamed(String(name ?? '').trim() || source.name),
    ...(source.size && { 'Content-Length': source.size }),
  }
  const path = `/v1/campaigns/${encodeURIComponent(campaign)}/responses/${encodeURIComponent(response)}/files`
  try {
    return await call(z, bundle, 'POST', path, { query: { module }, body: source.stream, headers, signal: ended.signal })
  } catch (error) {
    if (broken) throw new z.errors.Error(`The file broke off while it was fetched: ${broken.message}.`, 'file_not_fetched')
    throw error
  } finally {
    source.stream.destroy()
  }
}

module.exports = {
  key: 'upload_file',
  noun: 'File',
  display: { label: 'Upload File', description: 'Attaches a file to a response.' },
  operation: {
    perform,
    inputFields: [
      requiredCampaignField(),
      responseField,
      {
        key: 'file',
        label: 'File',
        type: 'file',
        required: true,
        helpText: 'A file of an earlier step, or a web address that needs no sign-in.',
      },
      { key: 'name', label: 'File Name', type: 'string', helpText: 'Leave empty to keep the name of the file.' },
      { key: 'module', label: 'Module', type: 'string', helpText: 'The name of the module that the file answers, if any.' },
      onceField,
    ],
    sample: withId(sampleFile),
  },
}
