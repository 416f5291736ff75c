'use strict'

const { call } = require('../lib/http')
const { sampleResponse } = require('../lib/events')
const { needed, requiredCampaignField, responseField } = require('../lib/fields')
const { repeating } = require('../lib/repeat')
const { withId } = require('../lib/output')

// Setting the same status again changes nothing and raises no event.
async function perform(z, bundle) {
  const [campaign, response, status] = ['campaign', 'response', 'status'].map(key => needed(z, bundle, key))
  const path = `/v1/campaigns/${encodeURIComponent(campaign)}/responses/${encodeURIComponent(response)}`
  const { data } = await repeating(() => call(z, bundle, 'PATCH', path, { body: { status } }))
  return withId(data)
}

module.exports = {
  key: 'update_status',
  noun: 'Response',
  display: { label: 'Update Response Status', description: 'Sets the status of a response.' },
  operation: {
    perform,
    inputFields: [
      requiredCampaignField(),
      responseField,
      {
        key: 'status',
        label: 'Status',
        type: 'string',
        required: true,
        placeholder: 'validated',
        helpText: 'Lower-case letters, digits, - and _, such as validated or completed. The service may allow only some.',
      },
    ],
    sample: withId({ ...sampleResponse, status: 'validated' }),
  },
}
