import type { INodeProperties, INodePropertyOptions } from 'n8n-workflow'

// What a trigger can be told of. The first three are those that most workflows want.
const events: INodePropertyOptions[] = [
  {
    name: 'New Response',
    value: 'response.created',
    description: 'A new response was submitted',
  },
  {
    name: 'Status Changed',
    value: 'response.status_changed',
    description: 'The status of a response changed; data.previousStatus is the one before',
  },
  {
    name: 'Document Signed',
    value: 'signature.completed',
    description: 'A document was signed; data.signature has the signer',
  },
  {
    name: 'Response Changed',
    value: 'response.updated',
    description: 'A response was changed; data.changes lists what',
  },
  {
    name: 'Response Completed',
    value: 'response.completed',
    description: 'A response got a final status',
  },
  {
    name: 'File Uploaded',
    value: 'file.uploaded',
    description: 'A file was uploaded to a response; data.file describes it',
  },
]

export const eventsProperty: INodeProperties = {
  displayName: 'Events',
  name: 'events',
  type: 'multiOptions',
  options: events,
  default: ['response.created'],
  required: true,
  description: 'The events that start the workflow',
}
