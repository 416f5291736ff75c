import type {
  IAuthenticateGeneric,
  ICredentialTestRequest,
  ICredentialType,
  Icon,
  INodeProperties,
} from 'n8n-workflow'

export class FormsvcApi implements ICredentialType {
  name = 'formsvcApi'

  displayName = 'Forms Campaign Service API'

  icon: Icon = { light: 'file:../icons/formsvc.svg', dark: 'file:../icons/formsvc.dark.svg' }

  documentationUrl =
    'https://github.com/formsvc/toolkit/tree/main/examples/connectors/n8n#credentials'

  properties: INodeProperties[] = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      default: '',
      required: true,
      placeholder: 'https://forms.example.com',
      description: 'The address of the service, without /v1',
    },
    {
      displayName: 'API Key',
      name: 'apiKey',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      required: true,
      description: 'Create it in the console, under API keys. It is shown only once.',
    },
  ]

  authenticate: IAuthenticateGeneric = {
    type: 'generic',
    properties: { headers: { Authorization: '=Bearer {{$credentials.apiKey}}' } },
  }

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.baseUrl.trim().replace(/\\/+$/, "")}}', url: '/v1/me' },
  }
}
