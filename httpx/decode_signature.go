package httpx

import "github.com/formsvc/toolkit/formsvc"

// signatureInput decodes a signature.
func (d *decoder) signatureInput() (in formsvc.SignatureInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	var signer, email bool
	for d.member() {
		switch string(d.name) {
		case "signer":
			signer = true
			email = d.user(&in.Signer)
		case "fileUuid":
			in.FileID = d.optionalID()
		case "provider":
			in.Provider = d.optionalString()
		case "signedAt":
			in.SignedAt = d.optionalTime()
		default:
			d.unknown()
		}
	}
	d.require(signer, "/signer")
	// As in responseInput.
	d.require(!signer || email || len(d.faults.list) == 0, "/signer/email")
	return in, d.close()
}
