'use strict'

const { call } = require('../lib/http')
const { sampleCampaign } = require('../lib/events')
const { withId } = require('../lib/output')

// A campaign that has just this title goes first, then the newest.
async function perform(z, bundle) {
  const { title } = bundle.inputData
  const { data } = await call(z, bundle, 'GET', '/v1/campaigns', { query: { search: title, limit: 50 } })
  const exact = data.items.filter(campaign => campaign.title === title)
  const others = data.items.filter(campaign => campaign.title !== title)
  return [...exact, ...others].map(withId)
}

module.exports = {
  key: 'find_campaign',
  noun: 'Campaign',
  display: { label: 'Find Campaign', description: 'Finds a campaign by its title.' },
  operation: {
    perform,
    inputFields: [
      {
        key: 'title',
        label: 'Title',
        type: 'string',
        required: true,
        helpText: 'Part of the title, ignoring case. An exact match comes first.',
      },
    ],
    sample: withId({ ...sampleCampaign, status: 'open' }),
  },
}
