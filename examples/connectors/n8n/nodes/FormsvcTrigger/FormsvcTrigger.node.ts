import type {
  IHookFunctions,
  INodeType,
  INodeTypeDescription,
  IWebhookFunctions,
  IWebhookResponseData,
} from 'n8n-workflow'
import { NodeConnectionTypes } from 'n8n-workflow'

import { campaignProperty, searchCampaigns } from '../shared/campaigns'
import { remember } from '../shared/duplicates'
import { eventsProperty } from '../shared/events'
import { whyRefused } from '../shared/signature'
import { simplifyEvent, simplifyProperty } from '../shared/simplify'
import { isSubscribed, subscribe, unsubscribe } from '../shared/subscription'
import { credential } from '../shared/transport'

export class FormsvcTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Forms Campaign Service Trigger',
    name: 'formsvcTrigger',
    icon: { light: 'file:../../icons/formsvc.svg', dark: 'file:../../icons/formsvc.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts a workflow when a response is submitted or changes, or a document is signed',
    defaults: { name: 'Forms Campaign Service Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: credential, required: true }],
    webhooks: [
      {
        name: 'default',
        httpMethod: 'POST',
        responseMode: 'onReceived',
        responseData: 'received',
        path: 'webhook',
      },
    ],
    properties: [
      eventsProperty,
      campaignProperty({
        description: 'Only events of this campaign. Leave empty for all campaigns.',
      }),
      simplifyProperty,
      {
        displayName:
          "Deliveries need a valid signature with this workflow's secret. Repeats of the last 1000 events since n8n started are ignored. To catch others, compare the event's ID, for example with a Remove Duplicates node.",
        name: 'notice',
        type: 'notice',
        default: '',
      },
    ],
  }

  methods = { listSearch: { searchCampaigns } }

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        return await isSubscribed.call(this)
      },
      async create(this: IHookFunctions): Promise<boolean> {
        return await subscribe.call(this)
      },
      async delete(this: IHookFunctions): Promise<boolean> {
        return await unsubscribe.call(this)
      },
    },
  }

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData('node')
    const { rawBody } = this.getRequestObject() as { rawBody?: Buffer }
    const reason = whyRefused(secret, this.getHeaderData(), rawBody)
    if (reason) return answer.call(this, 401, reason)

    const event = this.getBodyData()
    if (typeof event.id !== 'string' || typeof event.event !== 'string') {
      return answer.call(this, 400, 'the body is not an event: id or event is missing')
    }
    const trigger = [this.getMode(), this.getWorkflow().id, this.getNode().id].join('/')
    switch (remember(trigger, event.id, this.getResponseObject())) {
      case 'accepted':
        return answer.call(this, 200, 'received before')
      case 'starting':
        // Whether it can be started is not known yet, so it must come again.
        return answer.call(this, 503, 'the same event is in progress')
      default:
        return { workflowData: [[{ json: this.getNodeParameter('simple') ? simplifyEvent(event) : event }]] }
    }
  }
}

// Answers a delivery without starting the workflow.
function answer(this: IWebhookFunctions, status: number, message: string): IWebhookResponseData {
  this.getResponseObject().status(status).json({ message })
  return { noWebhookResponse: true }
}
