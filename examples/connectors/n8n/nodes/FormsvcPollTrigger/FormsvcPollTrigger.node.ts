import type { INodeExecutionData, INodeType, INodeTypeDescription, IPollFunctions } from 'n8n-workflow'
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow'

import { campaignProperty, searchCampaigns } from '../shared/campaigns'
import { eventsProperty } from '../shared/events'
import { newEvents, sampleEvents } from '../shared/feed'
import { simplifyEvent, simplifyProperty } from '../shared/simplify'
import { credential } from '../shared/transport'

export class FormsvcPollTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Forms Campaign Service Polling Trigger',
    name: 'formsvcPollTrigger',
    icon: { light: 'file:../../icons/formsvc.svg', dark: 'file:../../icons/formsvc.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Asks for new events at intervals, for an n8n that the service cannot reach',
    defaults: { name: 'Forms Campaign Service Polling Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: credential, required: true }],
    polling: true,
    properties: [
      eventsProperty,
      campaignProperty({
        description: 'Only events of this campaign. Leave empty for all campaigns.',
      }),
      simplifyProperty,
    ],
  }

  methods = { listSearch: { searchCampaigns } }

  async poll(this: IPollFunctions): Promise<INodeExecutionData[][] | null> {
    const manual = this.getMode() === 'manual'
    const found = manual ? await sampleEvents.call(this) : await newEvents.call(this)
    if (found.length === 0) {
      if (!manual) return null
      throw new NodeOperationError(this.getNode(), 'There is no matching event yet', {
        description: 'Submit a response, for example, and try again. A published workflow starts with later events.',
      })
    }
    const simple = this.getNodeParameter('simple') as boolean
    return [found.map((event) => ({ json: simple ? simplifyEvent(event) : event }))]
  }
}
