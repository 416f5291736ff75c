'use strict'

// The events, and a sample of each that has exactly the members of a delivery.

const campaign = { uuid: '019aa5f0-6c00-7000-8000-000000000001', title: 'Travel grants 2027' }

function response(more = {}) {
  return {
    uuid: '019aa5f0-6c00-7000-8000-000000000002',
    reference: '7XK4-MQ2PWD',
    status: 'pending',
    user: { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' },
    responses: { languages: { value: ['English', 'French'] } },
    createdAt: '2026-11-21T08:30:11.123Z',
    campaignUuid: campaign.uuid,
    updatedAt: '2026-11-21T08:30:11.123Z',
    completedAt: null,
    metadata: {},
    ...more,
  }
}

const actor = { type: 'key', id: '019aa5f0-6c00-7000-8000-000000000006', name: 'Website' }

const file = {
  uuid: '019aa5f0-6c00-7000-8000-000000000003',
  name: 'passport.pdf',
  contentType: 'application/pdf',
  size: 48213,
  sha256: '5ab4ce8a7c8e694b696b453395f2bcb4e08d21fc8851c9c4f2a832691856cdd8',
  module: 'passport',
  responseUuid: response().uuid,
  campaignUuid: campaign.uuid,
  createdAt: '2026-11-21T08:30:13.123Z',
}

const signature = {
  uuid: '019aa5f0-6c00-7000-8000-000000000004',
  signer: { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' },
  fileUuid: file.uuid,
  provider: 'signing.example',
  documentSha256: '043f64fe8df8ad440f7ee2ca14dffca762e0415b3337ecd8267c4533c5bbcd77',
  signedAt: '2026-11-21T08:30:10.000Z',
  createdAt: '2026-11-21T08:30:18.123Z',
}

function sample(event, data) {
  return {
    id: '019aa5f0-6c00-7000-8000-000000000005',
    event,
    timestamp: '2026-11-21T08:30:20.123Z',
    data: { campaign, response: response(), ...data, actor },
  }
}

// fileUuid, where an event can have a file, returns which one it is, or null. data lists what the event adds to the
// campaign and the response.
const EVENTS = [
  {
    key: 'response_created',
    event: 'response.created',
    noun: 'Response',
    label: 'New Response',
    description: 'Triggers when a response is submitted.',
    data: {},
  },
  {
    key: 'response_status_changed',
    event: 'response.status_changed',
    noun: 'Response',
    label: 'Response Status Changed',
    description: 'Triggers when the status of a response changes.',
    data: { response: response({ status: 'validated' }), previousStatus: 'pending' },
  },
  {
    key: 'signature_completed',
    event: 'signature.completed',
    noun: 'Signature',
    label: 'Document Signed',
    description: 'Triggers when a document is signed.',
    data: { signature },
    fileUuid: envelope => envelope.data.signature.fileUuid,
  },
  {
    key: 'response_updated',
    event: 'response.updated',
    noun: 'Response',
    label: 'Response Updated',
    description: 'Triggers when the answers or the submitter of a response change.',
    data: { changes: ['/responses/languages'] },
  },
  {
    key: 'response_completed',
    event: 'response.completed',
    noun: 'Response',
    label: 'Response Completed',
    description: 'Triggers when a response gets a final status.',
    data: { response: response({ status: 'completed', completedAt: '2026-11-21T08:30:20.123Z' }), previousStatus: 'validated' },
  },
  {
    key: 'file_uploaded',
    event: 'file.uploaded',
    noun: 'File',
    label: 'File Uploaded',
    description: 'Triggers when a file is uploaded to a response.',
    data: { file },
    fileUuid: envelope => envelope.data.file.uuid,
  },
].map(({ data, ...entry }) => ({ ...entry, sample: sample(entry.event, data) }))

module.exports = { EVENTS, sampleCampaign: campaign, sampleFile: file, sampleResponse: response() }
