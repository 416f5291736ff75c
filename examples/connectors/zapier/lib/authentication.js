'use strict'

const { call } = require('./http')

// Says whose key it is.
async function test(z, bundle) {
  const { data } = await call(z, bundle, 'GET', '/v1/me')
  return { account: data.account.name, keyName: data.key.name, permissions: data.permissions.join(', ') }
}

// Zapier hands over what the test returned as the input.
function connectionLabel(z, bundle) {
  return `${bundle.inputData.account} – ${bundle.inputData.keyName}`
}

module.exports = {
  type: 'custom',
  test,
  connectionLabel,
  fields: [
    {
      key: 'baseUrl',
      label: 'Address of the Service',
      type: 'string',
      required: true,
      placeholder: 'https://forms.example.com',
      helpText: 'Without /v1. Zapier must be able to reach it from the internet by https.',
    },
    {
      key: 'apiKey',
      label: 'API Key',
      type: 'password',
      required: true,
      helpText: 'Create it in the console of the service, under API keys. It is shown only once. Give it only the permissions ' +
        'that your Zaps need; the README of this app lists them.',
    },
  ],
}
