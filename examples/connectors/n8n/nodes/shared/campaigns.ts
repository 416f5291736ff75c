import type {
  IDataObject,
  ILoadOptionsFunctions,
  INodeListSearchResult,
  INodeProperties,
  ResourceMapperField,
  ResourceMapperFields,
} from 'n8n-workflow'

import { json } from './transport'
import type { Page } from './transport'

export interface Module {
  name: string
  label: string
  type: string
  required: boolean
  options: (string | { value: string, label?: string })[]
  multiple: boolean
  other?: boolean
  showIf: object | null
}

interface Campaign {
  uuid: string
  title: string
  modules: Module[]
}

const uuidPattern = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

// The parameter that names a campaign: a list that can be searched, or an identifier.
export function campaignProperty(more: Partial<INodeProperties>): INodeProperties {
  return {
    displayName: 'Campaign',
    name: 'campaign',
    type: 'resourceLocator',
    default: { mode: 'list', value: '' },
    description: 'Choose a campaign from the list, or give its UUID',
    modes: [
      {
        displayName: 'From List',
        name: 'list',
        type: 'list',
        placeholder: 'Select a campaign…',
        typeOptions: { searchListMethod: 'searchCampaigns', searchable: true },
      },
      {
        displayName: 'By ID',
        name: 'id',
        type: 'string',
        placeholder: '01a1fd3a-135b-7000-8000-000000000007',
        validation: [
          {
            type: 'regex',
            properties: { regex: `^${uuidPattern}$`, errorMessage: 'Give the UUID of a campaign' },
          },
        ],
      },
    ],
    ...more,
  }
}

// One page of the campaigns whose title contains the filter.
export async function searchCampaigns(
  this: ILoadOptionsFunctions,
  filter?: string,
  paginationToken?: string,
): Promise<INodeListSearchResult> {
  const query: IDataObject = { limit: 50 }
  if (filter) query.search = filter
  if (paginationToken) query.cursor = paginationToken
  const page = await json<Page<Campaign>>(this, 'GET', '/v1/campaigns', { query })
  return {
    results: page.items.map(({ title, uuid }) => ({ name: title, value: uuid })),
    paginationToken: page.nextCursor ?? undefined,
  }
}

// The questions of the chosen campaign, as fields to fill in.
export async function getModules(this: ILoadOptionsFunctions): Promise<ResourceMapperFields> {
  const chosen = this.getNodeParameter('campaign', undefined, { extractValue: true })
  if (typeof chosen !== 'string' || !new RegExp(`^${uuidPattern}$`).test(chosen)) {
    return {
      fields: [],
      emptyFieldsNotice: 'First choose a campaign from the list or by its UUID. If an expression chooses it, give the answers as JSON.',
    }
  }
  const campaign = await json<Campaign>(this, 'GET', `/v1/campaigns/${chosen}`)
  return {
    fields: campaign.modules.filter(({ type }) => type !== 'file' && type !== 'section').map(asField),
    emptyFieldsNotice: 'This campaign has no questions. Give the answers as names and values, or as JSON.',
  }
}

function asField(module: Module): ResourceMapperField {
  return {
    id: module.name,
    displayName: module.label || module.name,
    required: module.required && !module.showIf, // other answers may hide it; the service knows
    defaultMatch: false,
    canBeUsedToMatch: false,
    display: true,
    ...typeOf(module),
  }
}

function typeOf({ type, multiple, other, options }: Module): Pick<ResourceMapperField, 'type' | 'options'> {
  if (multiple) return { type: 'array' }
  if (other) return { type: 'string' } // a choice that takes other texts, too
  switch (type) {
    case 'number':
    case 'rating':
    case 'scale':
      return { type: 'number' }
    case 'boolean':
      return { type: 'boolean' }
    case 'date':
      return { type: 'dateTime' }
    case 'consent': // without consent it stays empty
      return { type: 'options', options: [{ name: 'Yes', value: 'true' }] }
    case 'choice':
      return {
        type: 'options',
        options: options.map((o) => typeof o === 'string' ? { name: o, value: o } : { name: o.label ?? o.value, value: o.value }),
      }
    default:
      return { type: 'string' }
  }
}
