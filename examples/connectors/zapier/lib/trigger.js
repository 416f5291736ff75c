'use strict'

const { call } = require('./http')
const { campaignField, moduleOutputFields } = require('./fields')
const { downloadFile } = require('./files')
const { MAX_AGE, verify } = require('./verify')
const { subscribe, unsubscribe } = require('./webhooks')

// Returns the trigger for one of EVENTS.
function eventTrigger({ key, event, noun, label, description, sample, fileUuid }) {
  const output = (z, envelope) => (fileUuid ? { ...envelope, file: attachment(z, fileUuid(envelope)) } : envelope)

  async function perform(z, bundle) {
    const envelope = checked(z, bundle)
    return (await isKnown(z, bundle, envelope.id)) ? [] : [output(z, envelope)]
  }

  // What the editor shows to map from. The items are the same as deliveries; an account that has none yet gets a sample.
  async function performList(z, bundle) {
    const query = { order: 'desc', event, campaignUuid: bundle.inputData.campaign, limit: 3 }
    const { data } = await call(z, bundle, 'GET', '/v1/events', { query })
    return data.items.length ? data.items.map(envelope => output(z, envelope)) : [withFile]
  }

  const withFile = fileUuid ? { ...sample, file: 'SAMPLE FILE' } : sample
  return {
    key,
    noun,
    display: { label, description },
    operation: {
      type: 'hook',
      inputFields: [campaignField({ helpText: 'Only events of this campaign. Leave empty for all campaigns.' })],
      performSubscribe: (z, bundle) => subscribe(z, bundle, event),
      performUnsubscribe: unsubscribe,
      perform,
      performList,
      sample: withFile,
      outputFields: [...outputFields(fileUuid), moduleOutputFields],
    },
  }
}

// Returns the envelope of a delivery that is really from the service.
function checked(z, bundle) {
  try {
    return verify(bundle.rawRequest, bundle.subscribeData?.secret)
  } catch (error) {
    throw new z.errors.Error(`A delivery was refused: ${error.message}.`, 'delivery_refused', 401)
  }
}

// Says whether this Zap had the event before, and remembers it. The service sends an event again when Zapier's answer
// got lost. An event is never dropped for want of the memory.
async function isKnown(z, bundle, id) {
  const key = `delivery:${bundle.subscribeData.id}:${id}`
  try {
    if (await z.cache.get(key)) return true
    await z.cache.set(key, true, MAX_AGE)
  } catch (error) {
    z.console.error(`Event ${id} could not be looked up in Zapier's cache, so it may come twice: ${error.message}`)
  }
  return false
}

// Returns a file that is downloaded when a later step needs it, or null where the event has none.
function attachment(z, fileUuid) {
  return fileUuid ? z.dehydrateFile(downloadFile, { fileUuid }) : null
}

function outputFields(fileUuid) {
  return [
    { key: 'id', label: 'Event ID', primary: true },
    { key: 'event', label: 'Event' },
    { key: 'timestamp', label: 'Time of the Event', type: 'datetime' },
    { key: 'data__campaign__uuid', label: 'Campaign UUID' },
    { key: 'data__campaign__title', label: 'Campaign Title' },
    { key: 'data__response__uuid', label: 'Response UUID' },
    { key: 'data__response__reference', label: 'Response Reference' },
    { key: 'data__response__status', label: 'Response Status' },
    { key: 'data__response__user__email', label: 'Submitter Email' },
    { key: 'data__response__user__firstName', label: 'Submitter First Name' },
    { key: 'data__response__user__lastName', label: 'Submitter Last Name' },
    ...(fileUuid ? [{ key: 'file', label: 'File', type: 'file' }] : []),
  ]
}

module.exports = { eventTrigger }
