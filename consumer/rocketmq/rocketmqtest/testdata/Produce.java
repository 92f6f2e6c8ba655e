import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

// Sends a body of 10,000 letters and a number to a topic, once with each compression, and then a batch.
// Arguments: name server, topic.
public class Produce {
    public static void main(String[] args) {
        try {
            send(args);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1); // else the threads of the producer would keep the process
        }
    }

    static void send(String[] args) throws Exception {
        String letters = "x".repeat(10000);
        for (String type : new String[] {"NONE", "ZLIB", "LZ4", "ZSTD"}) {
            if (!type.equals("NONE")) {
                System.setProperty("rocketmq.message.compressType", type);
            }
            DefaultMQProducer producer = new DefaultMQProducer("java-producers");
            producer.setNamesrvAddr(args[0]);
            producer.setInstanceName(type);
            if (type.equals("NONE")) {
                producer.setCompressMsgBodyOverHowmuch(1 << 20);
            } else {
                producer.setCompressType(org.apache.rocketmq.common.compression.CompressionType.of(type));
            }
            producer.start();
            producer.send(new Message(args[1], type, letters.getBytes(StandardCharsets.UTF_8)));
            if (type.equals("NONE")) {
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < 3; i++) {
                    batch.add(new Message(args[1], "BATCH", ("b" + i).getBytes(StandardCharsets.UTF_8)));
                }
                producer.send(batch);
            }
            producer.shutdown();
        }
        System.out.println("sent");
    }
}
