package formsvc

import (
	"sync"
)

// campaignCache remembers campaigns that took responses lately. It may hold old
// ones: whoever uses it confirms the version when writing.
type campaignCache struct {
	mu   sync.RWMutex
	byID map[CampaignKey]*Campaign
}

// Bounds of the cache: campaigns with more modules are read each time.
const (
	campaignCacheSize    = 1_000
	campaignCacheModules = 100
)

func (c *campaignCache) get(key CampaignKey) *Campaign {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[key]
}

func (c *campaignCache) put(campaign *Campaign) {
	key := CampaignKey{AccountID: campaign.AccountID, ID: campaign.ID}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(campaign.Modules) > campaignCacheModules {
		delete(c.byID, key)
		return
	}
	if c.byID == nil || len(c.byID) >= campaignCacheSize {
		c.byID = make(map[CampaignKey]*Campaign)
	}
	c.byID[key] = campaign
}
