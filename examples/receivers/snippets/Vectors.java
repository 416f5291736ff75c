import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

// Checks Verify.java against the golden vectors. The JDK has no JSON parser, so each is a
// line: want, name, signature or -, body and secrets, separated by spaces. All except want
// and - are in base64.
final class Vectors {
    public static void main(String[] args) throws Exception {
        int count = 0, wrong = 0;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            List<String> fields = Arrays.asList(line.split(" ", -1));
            String signature = fields.get(2).equals("-") ? null : text(fields.get(2));
            List<String> secrets = fields.subList(4, fields.size()).stream().map(Vectors::text).toList();
            String verdict;
            try {
                verdict = Verify.verify(secrets, signature, Base64.getDecoder().decode(fields.get(3))) ? "ok" : "refused";
            } catch (IllegalArgumentException e) {
                verdict = "no_secret";
            }
            String want = List.of("ok", "no_secret").contains(fields.get(0)) ? fields.get(0) : "refused";
            if (!verdict.equals(want)) {
                System.out.println("WRONG " + text(fields.get(1)) + ": " + verdict);
                wrong++;
            }
            count++;
        }
        System.out.println(count + " vectors");
        System.exit(wrong > 0 ? 1 : 0);
    }

    private static String text(String base64) {
        return new String(Base64.getDecoder().decode(base64), UTF_8);
    }
}
