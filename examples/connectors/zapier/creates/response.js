'use strict'

const { call } = require('../lib/http')
const { sampleResponse } = require('../lib/events')
const { answerFields, answersOf, needed, requiredCampaignField } = require('../lib/fields')
const { idempotencyKey, onceField, repeating } = require('../lib/repeat')
const { withId } = require('../lib/output')

async function perform(z, bundle) {
  const { firstName, lastName } = bundle.inputData
  const campaign = needed(z, bundle, 'campaign')
  const email = bundle.inputData.email ? needed(z, bundle, 'email') : ''
  const body = {
    user: { email, firstName: firstName ?? '', lastName: lastName ?? '' },
    responses: answersOf(z, bundle.inputData),
  }
  const headers = { 'Idempotency-Key': idempotencyKey(bundle, 'create_response', campaign) }
  const path = `/v1/campaigns/${encodeURIComponent(campaign)}/responses`
  const { data } = await repeating(() => call(z, bundle, 'POST', path, { body, headers }))
  return withId(data)
}

module.exports = {
  key: 'create_response',
  noun: 'Response',
  display: { label: 'Create Response', description: 'Submits a response to a campaign.' },
  operation: {
    perform,
    inputFields: [
      requiredCampaignField({ altersDynamicFields: true }),
      {
        key: 'email', label: 'Submitter Email', type: 'string',
        helpText: 'May be empty if the campaign says that it is optional.',
      },
      { key: 'firstName', label: 'Submitter First Name', type: 'string' },
      { key: 'lastName', label: 'Submitter Last Name', type: 'string' },
      answerFields,
      onceField,
    ],
    sample: withId(sampleResponse),
  },
}
