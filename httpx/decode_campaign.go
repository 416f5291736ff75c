package httpx

import "github.com/formsvc/toolkit/formsvc"

// campaignInput decodes the body of a POST, or of a PUT when replace is true.
func (d *decoder) campaignInput(replace bool) (in formsvc.CampaignInput, err error) {
	if d.open() {
		for d.member() {
			d.campaignMember(&in, replace)
		}
	}
	return in, d.close()
}

func (d *decoder) campaignMember(in *formsvc.CampaignInput, replace bool) {
	switch string(d.name) {
	case "title":
		in.Title, _ = d.string()
	case "description":
		in.Description = d.optionalString()
	case "status":
		in.Status = formsvc.CampaignStatus(d.optionalWord())
	case "opensAt":
		in.OpensAt = d.optionalTime()
	case "closesAt":
		in.ClosesAt = d.optionalTime()
	case "requireEmail":
		in.EmailOptional = !d.null() && !d.optionalBool()
	case "modules":
		in.Modules = d.modules()
	case "metadata":
		in.Metadata = d.metadata()
	case "uuid", "responseCount", "createdAt", "updatedAt":
		if replace {
			d.skip()
			return
		}
		d.unknown()
	default:
		d.unknown()
	}
}

func (d *decoder) modules() []formsvc.Module {
	if d.null() || !d.array() {
		return nil
	}
	var list []formsvc.Module
	for n := 0; d.element(); n++ {
		if n == maxMembers {
			d.overflow()
			return list
		}
		var m formsvc.Module
		if d.object() {
			for d.member() {
				d.moduleMember(&m)
			}
		}
		list = append(list, m)
	}
	return list
}

func (d *decoder) moduleMember(m *formsvc.Module) {
	switch string(d.name) {
	case "name":
		m.Name, _ = d.string()
	case "label":
		m.Label = d.optionalString()
	case "type":
		m.Type = formsvc.ModuleType(d.optionalWord())
	case "required":
		m.Required = d.optionalBool()
	case "options":
		if !d.null() {
			m.Options = d.stringList()
		}
	case "maxLength":
		m.MaxLength = d.optionalInt()
	case "multiple":
		m.Multiple = d.optionalBool()
	default:
		d.unknown()
	}
}

func (d *decoder) metadata() map[string]string {
	if d.null() || !d.object() {
		return nil
	}
	metadata := make(map[string]string)
	for n := 0; d.member(); n++ {
		if n == maxMembers {
			d.overflow()
			return metadata
		}
		name := d.strings.string(d.name)
		if value, ok := d.string(); ok {
			metadata[name] = value
		}
	}
	return metadata
}
