'use strict'

const { call } = require('../lib/http')
const { sampleCampaign } = require('../lib/events')

const SIZE = 100

// A page of campaigns for drop-downs, newest first.
async function perform(z, bundle) {
  const query = { limit: SIZE, offset: (bundle.meta.page || 0) * SIZE }
  const { data } = await call(z, bundle, 'GET', '/v1/campaigns', { query })
  return data.items.map(({ uuid, title }) => ({ id: uuid, title }))
}

module.exports = {
  key: 'campaigns',
  noun: 'Campaign',
  display: {
    label: 'List of Campaigns',
    description: 'Fills the drop-downs of campaigns.',
    hidden: true,
  },
  operation: {
    type: 'polling',
    canPaginate: true,
    perform,
    sample: { id: sampleCampaign.uuid, title: sampleCampaign.title },
  },
}
