package s3blob

import (
	"net/http"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Credentials sign requests. The zero value means none.
type Credentials struct {
	provider *credentials.Credentials
}

// StaticCredentials returns fixed credentials. The session token is for temporary ones and usually
// "".
func StaticCredentials(accessKey, secretKey, sessionToken string) Credentials {
	return Credentials{credentials.NewStaticV4(accessKey, secretKey, sessionToken)}
}

// roleTimeout limits a request for the credentials of a role; no other request is sent meanwhile.
const roleTimeout = 5 * time.Second

// AWSCredentials returns the first credentials found in the usual places of AWS programs. These are
// the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the file
// ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), and the role of the pod, the
// container or the machine. They are looked up on demand and again when they expire. If there are
// none, requests are sent unsigned and refused.
func AWSCredentials() Credentials {
	client := &http.Client{Transport: newTransport(), Timeout: roleTimeout}
	return Credentials{credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: client},
	})}
}
