import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Verify {
    // Tells whether body, the raw bytes of a request, was signed with one of the
    // secrets. signature is the value of the header x-service-signature. In Spring
    // the raw bytes are a parameter @RequestBody byte[] body.
    static boolean verify(List<String> secrets, String signature, byte[] body) throws GeneralSecurityException {
        if (secrets.isEmpty() || secrets.contains("")) throw new IllegalArgumentException("no secret");
        if (signature == null) return false;
        for (String secret : secrets) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
            String want = HexFormat.of().formatHex(mac.doFinal(body));
            if (MessageDigest.isEqual(want.getBytes(UTF_8), signature.getBytes(UTF_8))) return true;
        }
        return false;
    }
}
