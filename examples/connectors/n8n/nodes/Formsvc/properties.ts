import type { INodeProperties, INodePropertyOptions } from 'n8n-workflow'

import { campaignProperty } from '../shared/campaigns'
import { simplifyProperty } from '../shared/simplify'

// Shows a parameter for these operations of a resource.
function shownFor(resource: string, ...operation: string[]): Pick<INodeProperties, 'displayOptions'> {
  return { displayOptions: { show: { resource: [resource], operation } } }
}

function operationsOf(resource: string, options: INodePropertyOptions[], preset: string): INodeProperties {
  return {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: [resource] } },
    options,
    default: preset,
  }
}

const idempotencyKey: INodeProperties = {
  displayName: 'Idempotency Key',
  name: 'idempotencyKey',
  type: 'string',
  default: '',
  description:
    'A unique name for this submission, such as an order ID. Within 24 hours the same key submits once, even from another execution. By default each item of each execution has its own key.',
}

const responseUuid: INodeProperties = {
  displayName: 'Response UUID',
  name: 'responseUuid',
  type: 'string',
  default: '',
  required: true,
  placeholder: '={{ $json.data.response.uuid }}',
  description: 'UUID of the response: data.response.uuid of the trigger',
}

const resources: INodeProperties = {
  displayName: 'Resource',
  name: 'resource',
  type: 'options',
  noDataExpression: true,
  options: [
    { name: 'Campaign', value: 'campaign' },
    { name: 'File', value: 'file' },
    { name: 'Response', value: 'response' },
  ],
  default: 'response',
}

const operations: INodeProperties[] = [
  operationsOf('campaign', [
    { name: 'Get', value: 'get', description: 'Read one campaign with its questions', action: 'Get a campaign' },
    { name: 'Get Many', value: 'getAll', description: 'List campaigns', action: 'Get many campaigns' },
  ], 'get'),
  operationsOf('file', [
    { name: 'Download', value: 'download', description: 'Get the bytes of a file', action: 'Download a file' },
    { name: 'Get Many', value: 'getAll', description: 'List the files of a response', action: 'Get many files of a response' },
    { name: 'Upload', value: 'upload', description: 'Add a file to a response', action: 'Upload a file to a response' },
  ], 'upload'),
  operationsOf('response', [
    { name: 'Add Comment', value: 'addComment', description: 'Comment on a response', action: 'Add a comment to a response' },
    { name: 'Create', value: 'create', description: 'Submit a response to a campaign', action: 'Create a response' },
    { name: 'Get', value: 'get', description: 'Read one response', action: 'Get a response' },
    { name: 'Get Many', value: 'getAll', description: 'List the responses of a campaign', action: 'Get many responses' },
    { name: 'Update Status', value: 'updateStatus', description: 'Set the status of a response', action: 'Update the status of a response' },
  ], 'create'),
]

const targets: INodeProperties[] = [
  campaignProperty({ required: true, ...shownFor('campaign', 'get') }),
  campaignProperty({
    required: true,
    ...shownFor('response', 'create', 'get', 'getAll', 'updateStatus', 'addComment'),
  }),
  campaignProperty({ required: true, ...shownFor('file', 'upload', 'getAll') }),
  { ...responseUuid, ...shownFor('response', 'get', 'updateStatus', 'addComment') },
  { ...responseUuid, ...shownFor('file', 'upload', 'getAll') },
]

const creation: INodeProperties[] = [
  {
    displayName: 'Email',
    name: 'email',
    type: 'string',
    placeholder: 'ada@example.com',
    default: '',
    description: 'Email address of the submitter. May be empty if the campaign says that it is optional.',
    ...shownFor('response', 'create'),
  },
  {
    displayName: 'Answers',
    name: 'answersFrom',
    type: 'options',
    options: [
      { name: 'By Question', value: 'modules', description: 'One field for each question of the campaign' },
      { name: 'As Names and Values', value: 'pairs', description: 'For campaigns without questions' },
      { name: 'As JSON', value: 'json', description: 'An object with a field for each answer' },
    ],
    default: 'modules',
    description: 'How to enter the answers',
    ...shownFor('response', 'create'),
  },
  {
    displayName: 'Questions',
    name: 'modules',
    type: 'resourceMapper',
    noDataExpression: true,
    default: { mappingMode: 'defineBelow', value: null },
    description: 'Empty fields are not sent',
    typeOptions: {
      loadOptionsDependsOn: ['campaign.value'],
      resourceMapper: {
        resourceMapperMethod: 'getModules',
        mode: 'add',
        valuesLabel: 'Answers',
        fieldWords: { singular: 'question', plural: 'questions' },
        addAllFields: true,
        multiKeyMatch: false,
        supportAutoMap: true,
      },
    },
    displayOptions: { show: { resource: ['response'], operation: ['create'], answersFrom: ['modules'] } },
  },
  {
    displayName: 'Names and Values',
    name: 'pairs',
    type: 'fixedCollection',
    typeOptions: { multipleValues: true, sortable: true },
    placeholder: 'Add Answer',
    default: {},
    description: 'Repeat a name to give several values',
    options: [
      {
        name: 'pair',
        displayName: 'Answer',
        values: [
          { displayName: 'Name', name: 'name', type: 'string', default: '', required: true },
          { displayName: 'Value', name: 'value', type: 'string', default: '' },
        ],
      },
    ],
    displayOptions: { show: { resource: ['response'], operation: ['create'], answersFrom: ['pairs'] } },
  },
  {
    displayName: 'JSON',
    name: 'answersJson',
    type: 'json',
    default: '{}',
    description:
      'Such as {"name": "Ada", "languages": ["English", "French"]}, or data.response.answers of the trigger',
    displayOptions: { show: { resource: ['response'], operation: ['create'], answersFrom: ['json'] } },
  },
  {
    displayName: 'Options',
    name: 'createOptions',
    type: 'collection',
    placeholder: 'Add Option',
    default: {},
    options: [
      { displayName: 'First Name', name: 'firstName', type: 'string', default: '' },
      idempotencyKey,
      { displayName: 'Last Name', name: 'lastName', type: 'string', default: '' },
    ],
    ...shownFor('response', 'create'),
  },
]

const changes: INodeProperties[] = [
  {
    displayName: 'Status',
    name: 'status',
    type: 'string',
    default: 'validated',
    required: true,
    description: 'The new status: lower-case letters, digits, - and _. The service may allow only some.',
    ...shownFor('response', 'updateStatus'),
  },
  {
    displayName: 'Comment',
    name: 'comment',
    type: 'string',
    typeOptions: { rows: 4 },
    default: '',
    required: true,
    description: 'Up to 10,000 characters',
    ...shownFor('response', 'addComment'),
  },
  {
    displayName: 'Options',
    name: 'commentOptions',
    type: 'collection',
    placeholder: 'Add Option',
    default: {},
    options: [idempotencyKey],
    ...shownFor('response', 'addComment'),
  },
]

const files: INodeProperties[] = [
  {
    displayName: 'File UUID',
    name: 'fileUuid',
    type: 'string',
    default: '',
    required: true,
    placeholder: '={{ $json.data.file.uuid }}',
    description: 'UUID of the file: data.file.uuid of the trigger',
    ...shownFor('file', 'download'),
  },
  {
    displayName: 'Input Binary Field',
    name: 'binaryProperty',
    type: 'string',
    default: 'data',
    required: true,
    hint: 'The name of the input field that holds the file',
    ...shownFor('file', 'upload'),
  },
  {
    displayName: 'Put Output File in Field',
    name: 'binaryProperty',
    type: 'string',
    default: 'data',
    required: true,
    hint: 'The name of the output field that gets the file',
    ...shownFor('file', 'download'),
  },
  {
    displayName: 'Options',
    name: 'uploadOptions',
    type: 'collection',
    placeholder: 'Add Option',
    default: {},
    options: [
      {
        displayName: 'File Name',
        name: 'name',
        type: 'string',
        default: '',
        description: 'Replaces the name of the file',
      },
      idempotencyKey,
      {
        displayName: 'Question',
        name: 'module',
        type: 'string',
        default: '',
        description: 'The name of the question (module) that the file answers',
      },
    ],
    ...shownFor('file', 'upload'),
  },
]

const lists: INodeProperties[] = ['campaign', 'file', 'response'].flatMap((resource): INodeProperties[] => [
  {
    displayName: 'Return All',
    name: 'returnAll',
    type: 'boolean',
    default: false,
    description: 'Whether to return all results or only up to a given limit',
    ...shownFor(resource, 'getAll'),
  },
  {
    displayName: 'Limit',
    name: 'limit',
    type: 'number',
    typeOptions: { minValue: 1 },
    default: 50,
    description: 'Max number of results to return',
    displayOptions: { show: { resource: [resource], operation: ['getAll'], returnAll: [false] } },
  },
])

const filters: INodeProperties[] = [
  {
    displayName: 'Search',
    name: 'search',
    type: 'string',
    default: '',
    description: 'Only campaigns whose title contains this, ignoring case',
    ...shownFor('campaign', 'getAll'),
  },
  {
    displayName: 'Filters',
    name: 'filters',
    type: 'collection',
    placeholder: 'Add Filter',
    default: {},
    options: [
      { displayName: 'Created After', name: 'createdAfter', type: 'dateTime', default: '' },
      { displayName: 'Created Before', name: 'createdBefore', type: 'dateTime', default: '' },
      { displayName: 'Email', name: 'email', type: 'string', placeholder: 'ada@example.com', default: '' },
      { displayName: 'Reference', name: 'reference', type: 'string', default: '' },
      {
        displayName: 'Status',
        name: 'status',
        type: 'string',
        typeOptions: { multipleValues: true, multipleValueButtonText: 'Add Status' },
        default: [],
        description: 'Only responses with one of these statuses',
      },
      { displayName: 'Updated After', name: 'updatedAfter', type: 'dateTime', default: '' },
    ],
    ...shownFor('response', 'getAll'),
  },
]

export const properties: INodeProperties[] = [
  resources,
  ...operations,
  ...targets,
  ...creation,
  ...changes,
  ...files,
  ...lists,
  ...filters,
  { ...simplifyProperty, ...shownFor('response', 'create', 'get', 'getAll', 'updateStatus') },
]
